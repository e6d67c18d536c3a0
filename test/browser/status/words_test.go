package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/browser"
)

// view is what words.js makes of a state.
type view struct {
	Tone, Title, Headline, Detail string
	Countdown                     *countdown
	Warnings                      []string
	Verdict                       *struct {
		Token           uint64
		By, Reason      string
		Fate            string
		Survivors, Down struct{ Short, All string }
	}
	Members []struct {
		Name, Kind, Word, Inside, Sign, Title string
		Self, Holder                          bool
	}
	Ring *struct {
		Label string
		Links []link
	}
	Groups []struct{ Kind, Title string }
	Facts  []struct {
		Label, Value string
		Bad          bool
	}
}

type countdown struct {
	Text, At    string
	Until, From int64
}

type link struct {
	Kind     string
	From, To int
}

// wordsPage is a page whose words.js tests call.
func wordsPage(t *testing.T) *browser.Page {
	t.Helper()
	return opened(t, browser.Options{}, whole(1))
}

func call(t *testing.T, function string, args ...any) string {
	t.Helper()
	texts := make([]string, len(args))
	for i, a := range args {
		text, err := json.Marshal(a)
		require.NoError(t, err)
		texts[i] = string(text)
	}
	return fmt.Sprintf("words.%s(%s)", function, strings.Join(texts, ", "))
}

// seen is what the page says of a state. A member in UTC knows it.
func seen(t *testing.T, p *browser.Page, s *source, why ...any) *view {
	t.Helper()
	state := map[string]any{
		"zone": map[string]any{"name": "UTC", "offset": 0}, "status": s.Status(), "health": s.Health(), "config": s.Config(),
	}
	v := browser.Eval[view](p, call(t, "view", append([]any{state}, append(why, "")...)...))
	return &v
}

// noon is when something happens in a test.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// at sets since when the partition goes on, and when a decision is due.
func (s *source) at(since, deadline time.Time) *source {
	s.status.SuspendedSince, s.status.Deadline = &since, &deadline
	return s
}

func TestSingletons(t *testing.T) {
	p := wordsPage(t)
	s := whole(2)
	s.status.Singletons = []downing.SingletonStatus{
		{Name: "backup", Phase: "active", Token: 9, Holder: "n1", HolderToken: 9},
		{Name: "index", Phase: "acquiring", LeaseHolder: "n2#8d2m4c/1"},
		{Name: "mailer", Phase: "taking", Holder: "n2", WaitingFor: []string{"n2"}, Margin: "7s"},
	}
	said := make(map[string]string)
	for _, f := range seen(t, p, s).Facts {
		if name, ok := strings.CutPrefix(f.Label, "Singleton "); ok {
			said[name] = f.Value
		}
	}
	require.Equal(t, map[string]string{
		"backup": "runs here, active",
		"index":  "runs nowhere, as far as is known, acquiring, waits for the lease, held by n2",
		"mailer": "runs on n2, taking, waits for n2, removal margin 7s",
	}, said)
}

// What a Serf agent said before it fell silent is old.
func TestMembersOfASilentAgent(t *testing.T) {
	p := wordsPage(t)
	s := whole(3)
	s.status.State, s.status.SuspendedBecause, s.status.MembersAsOf = sbr.StateSuspended,
		"the Serf agent does not answer", &noon
	v := seen(t, p, s)
	require.Contains(t, v.Headline, "The Serf agent does not answer: the members are those of 12:00:00 UTC.")
	require.Equal(t, "3 members, as of 12:00:00 UTC", v.Facts[0].Value)
	require.True(t, v.Facts[0].Bad)
}

func TestHeadline(t *testing.T) {
	p := wordsPage(t)
	with := func(s *source, change func(*source)) *source { change(s); return s }
	downed := func(live web.Check, verdict string) *source {
		return with(whole(1), func(s *source) { s.status.State, s.health.Live, s.status.Verdict.Reason = sbr.StateDown, live, verdict })
	}
	const ended = "It must not work any more. Started again, it comes back as a new incarnation."
	for _, tc := range []struct {
		name, why              string
		s                      *source
		tone, headline, detail string
	}{
		{"alone", "", whole(1), "calm", "This member is alone: it knows no other.", ""},
		{"two", "", whole(2), "calm", "Both members reach each other.", ""},
		{"whole", "", whole(1234), "calm", "All 1,234 members reach each other.", ""},
		{
			"whole, but not ready", "", with(whole(5), func(s *source) { s.health.Ready = web.Check{Reason: "the stock agent is silent"} }),
			"wait", "All 5 members reach each other.", "Not ready: the stock agent is silent.",
		},
		{
			"whole, but no resolver on one", "", with(whole(5), func(s *source) { s.status.Untagged = []string{"n5"} }),
			"wait", "All 5 members reach each other.", "",
		},
		{
			"some were downed and are not back", "", with(whole(3), gone), "wait", "All 3 members reach each other.",
			"2 downed members are kept out: m1 and m2.",
		},
		{
			"others are there instead", "", with(whole(5), gone), "calm", "All 5 members reach each other.",
			"2 downed members are kept out: m1 and m2.",
		},
		{"others do not reach each other", "", indirectly(), "wait", "This member reaches all, but n2 does not reach n5; 2 more such reports.", ""},
		{
			"starting", "", with(whole(2), func(s *source) {
				s.status.State, s.health.Ready = sbr.StateArming, web.Check{Reason: "2 of at least 3 members are present"}
			}),
			"wait", "This member is starting: it sees 2 members and decides nothing yet.", "Not ready: 2 of at least 3 members are present.",
		},
		{
			"it waits before it takes part", "", with(whole(1), func(s *source) {
				s.status.State, s.status.StartingBecause = downing.StateStarting,
					"the lease s-sbr cannot be used: it is forbidden"
			}),
			"bad", "This member does not take part yet.", "The reason: the lease s-sbr cannot be used: it is forbidden.",
		},
		{
			"one is gone", "", whole(3).lose(1),
			"bad", "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable. No decision is due yet.",
		},
		{
			"many are gone", "", whole(500).lose(200), "bad", "200 of 500 members are unreachable: n301, n302, n303, n304 and 196 more.",
			"It began with: n301 is unreachable. No decision is due yet.",
		},
		{
			"a decision is due", "", whole(3).lose(1).at(noon, noon),
			"bad", "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable.",
		},
		{
			"another one leads", "", with(whole(3).lose(1), func(s *source) { s.status.Leader, s.status.Responsible = "n2", false }),
			"bad", "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable. n2 leads this side and decides.",
		},
		{
			"after a pause", "", with(whole(3), func(s *source) {
				s.status.State, s.status.SuspendedBecause = sbr.StateSuspended, "the process was paused for 40s"
			}), "bad", "Suspended: this member does not know its standing yet.",
			"It began with: the process was paused for 40s. No decision is due yet.",
		},
		{
			"waiting", "", whole(5).lose(2).waits(), "bad",
			"2 of 5 members are unreachable: n4 and n5; this side waits for the lease.", "Lease holder at the last successful read: n4.",
		},
		{
			"waiting for a free lease", "", with(whole(5).lose(2).waits(), func(s *source) { s.status.Lease.Holder = "" }), "bad",
			"2 of 5 members are unreachable: n4 and n5; this side waits for the lease.",
			"Lease holder at the last successful read: none.",
		},
		{
			"waiting for its own lease", "", with(whole(5).waits(), func(s *source) { s.status.Lease.Holder = s.status.Incarnation }),
			"bad", "This side waits for the lease payments-sbr.", "Lease holder at the last successful read: this member.",
		},
		{"resolved", "", decided(5, 2), "wait", "All 3 members reach each other.", "2 downed members are kept out: n4 and n5."},
		{
			"down, by its history", "down: verdict 4 by n1 says so", downed(web.Check{Reason: "down: x"}, "y"),
			"down", "This member was downed: verdict 4 by n1 says so.", ended,
		},
		{
			"down, by its health", "", downed(web.Check{Reason: "down: the resolver failed"}, "y"), "down", "This member was downed: the resolver failed.", ended,
		},
		{"down, by the verdict", "", downed(web.Check{}, "a majority is elsewhere"), "down", "This member was downed: a majority is elsewhere.", ended},
		{"down, nobody says why", "", downed(web.Check{}, ""), "down", "This member was downed.", ended},
		{
			"the loop is stuck", "", with(whole(3), func(s *source) { s.health.Live = web.Check{Reason: "the loop has not moved for 30s"} }),
			"bad", "The resolver does not work: the loop has not moved for 30s.", "A node whose resolver fails goes down.",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := seen(t, p, tc.s, tc.why)
			require.Equal(t, []string{tc.tone, tc.headline, tc.detail}, []string{v.Tone, v.Headline, v.Detail})
			sign := map[string]string{"calm": "✔", "wait": "!", "bad": "✘", "down": "■"}[tc.tone]
			require.True(t, strings.HasPrefix(v.Title, sign+" n1 "), v.Title)
		})
	}
}

func TestWhatIsDue(t *testing.T) {
	p := wordsPage(t)
	s := whole(5).lose(2).at(noon, noon.Add(20*time.Second))
	want := &countdown{At: "2026-03-14T12:00:20Z", Until: noon.Add(20 * time.Second).UnixMilli(),
		From: noon.UnixMilli()}
	want.Text = "A decision at 12:00:20 UTC"
	require.Equal(t, want, seen(t, p, s).Countdown)
	s.status.Leader, s.status.Responsible = "n2", false
	require.Equal(t, "Without a decision by n2, this member decides at 12:00:20 UTC",
		seen(t, p, s).Countdown.Text)
	require.Equal(t, "The next step at 12:00:20 UTC", seen(t, p, s.waits()).Countdown.Text)
	s.status.State = sbr.StateDown
	require.Nil(t, seen(t, p, s).Countdown, "nothing is decided here any more")
	require.Nil(t, seen(t, p, whole(5)).Countdown)
}

func TestWarnings(t *testing.T) {
	p, s := wordsPage(t), whole(20)
	require.Empty(t, seen(t, p, s).Warnings)
	s.status.Disagree, s.status.OtherStore = []string{"n2"}, []string{"n20"}
	s.status.Untagged = []string{"n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11"}
	s.status.Lease.Refused, s.status.Lease.Store = "it is forbidden", ""
	var begin []string
	for _, w := range seen(t, p, s).Warnings {
		first, _, _ := strings.Cut(w, ". ")
		begin = append(begin, first)
	}
	require.Equal(t, []string{
		"The lease store refuses this member, so in a partition it cannot win: it is forbidden",
		"It is not known which store keeps the lease, so a member with another one is not noticed",
		"1 member keeps the lease in another store than the cluster: n20",
		"1 member has another configuration: n2",
		"9 members run no resolver: n3, n4, n5, n6, n7, n8, n9 and 2 more",
	}, begin)
}

func TestVerdict(t *testing.T) {
	p := wordsPage(t)
	require.Nil(t, seen(t, p, whole(3)).Verdict)
	v := seen(t, p, decided(40, 13)).Verdict
	require.Equal(t, "27 of 40 counted members are reachable, a majority.", v.Reason)
	require.Equal(t, "n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 and 16 more", v.Survivors.Short)
	require.Contains(t, v.Survivors.All, "n26 and n27")
	require.Equal(t, "n4 and n5", seen(t, p, decided(5, 2)).Verdict.Down.Short)
	require.Empty(t, seen(t, p, decided(5, 2)).Verdict.Down.All, "nothing more to be said")
	unnamed := lost()
	unnamed.status.Verdict.Down = []string{}
	newer := decided(5, 2)
	newer.status.Incarnation = uid("n9")
	for want, s := range map[string]*source{
		"This member is among the survivors.":     decided(5, 2),
		"The verdict downs this member.":          lost(),
		"This member is not among the survivors.": unnamed,
		"This member came later.":                 newer,
	} {
		require.Equal(t, want, seen(t, p, s).Verdict.Fate)
	}
}

func TestRing_Links(t *testing.T) {
	p := wordsPage(t)
	kinds := func(s *source) map[string]int {
		all := make(map[string]int)
		for _, l := range seen(t, p, s).Ring.Links {
			all[l.Kind]++
		}
		return all
	}
	require.Equal(t, map[string]int{"open": 10}, kinds(whole(5)))
	require.Equal(t, map[string]int{"open": 3, "cut": 6}, kinds(whole(5).lose(2)),
		"of the two that are gone nothing is known")
	require.Equal(t, map[string]int{"open": 13, "cut": 1, "one-way": 1}, kinds(indirectly()))
	require.Equal(t, map[string]int{"open": 3}, kinds(decided(5, 2)), "a downed member has no links")
	require.Empty(t, kinds(whole(25)), "of many only the broken ones")
	own := whole(3)
	own.status.Members[2].Reachable = false
	require.Equal(t, map[string]int{"open": 1, "cut": 1}, kinds(own),
		"what this member sees is known without a report")
	require.Contains(t, seen(t, p, indirectly()).Ring.Links, link{Kind: "one-way", From: 5, To: 2},
		"n3 does not reach n6: the way from n6 to n3 works")
	s := whole(60)
	for _, a := range s.status.Members {
		for _, b := range s.status.Members {
			s.status.Reports = append(s.status.Reports, downing.ReportStatus{Observer: a.Name, Subject: b.Name})
		}
	}
	require.Len(t, seen(t, p, s).Ring.Links, 1200)
}

// gone is a verdict that three members survived; two were downed, and Serf lists them no longer.
func gone(s *source) {
	down := []string{uid("m1"), uid("m2")}
	s.status.Verdict = downing.VerdictStatus{
		Token: 4, Survivors: []string{uid("n1"), uid("n2"), uid("n3")}, Down: down, DecidedBy: uid("n1"),
	}
	for i, id := range down {
		m := downing.MemberStatus{Name: fmt.Sprint("m", i+1), Incarnation: id, Status: "down"}
		s.status.Downed = append(s.status.Downed, m)
	}
}

// Members that the verdict downed are shown with the others.
func TestRing_ShowsTheDowned(t *testing.T) {
	s := whole(3)
	gone(s)
	v := seen(t, wordsPage(t), s)
	require.Len(t, v.Members, 5)
	m2 := v.Members[4]
	require.Equal(t, []string{"m2", "downed", "■"}, []string{m2.Name, m2.Kind, m2.Inside})
}

// Shapes and signs tell the members apart, not colours.
func TestRing_Nodes(t *testing.T) {
	s := whole(5).lose(2)
	s.status.Members[2].Status = "down"
	s.status.Lease.Holder = uid("n2")
	n := seen(t, wordsPage(t), s).Members
	require.Equal(t, []string{"reached", "reached", "downed", "missed"},
		[]string{n[0].Kind, n[1].Kind, n[2].Kind, n[3].Kind})
	require.Equal(t, []string{"★A", "A", "■", "B"}, []string{n[0].Inside, n[1].Inside, n[2].Inside, n[3].Inside})
	require.Equal(t, []string{"this member", "", "downed", "unreachable"},
		[]string{n[0].Word, n[1].Word, n[2].Word, n[3].Word})
	require.True(t, n[0].Self)
	require.True(t, n[1].Holder)
	require.Equal(t, "n4: unreachable; not reached by n1, n2 and n3", n[3].Title)
}

func TestGroups(t *testing.T) {
	p := wordsPage(t)
	require.NotNil(t, seen(t, p, whole(60)).Ring)
	require.Nil(t, seen(t, p, whole(61)).Ring)
	s := whole(100).lose(20)
	s.status.Members[50].Status = "down"
	s.status.Untagged, s.status.Lease.Holder = []string{"n2"}, uid("n1")
	v := seen(t, p, s)
	require.Equal(t, []struct{ Kind, Title string }{
		{"missed", "20 cannot be reached from here (side B)"}, {"reached", "79 on this side (side A)"}, {"downed", "1 downed"},
	}, v.Groups)
	first, n1, n2 := v.Members[0], v.Members[20], v.Members[21]
	require.Equal(t, []string{"n81", "n1", "n2", "n51"},
		[]string{first.Name, n1.Name, n2.Name, v.Members[99].Name}, "what matters comes first")
	require.Equal(t, "n81: unreachable; not reached by n1, n2, n3 and 2 more", first.Title)
	require.Equal(t, []string{"✕5", "★◆", "⚠"}, []string{first.Sign, n1.Sign, n2.Sign})
}

// What others chose is shown without a character that is hidden, and what might turn is isolated.
func TestWords(t *testing.T) {
	p := wordsPage(t)
	isolated := func(text string) string { return "\u2068" + text + "\u2069" }
	for _, tc := range []struct {
		function string
		args     []any
		want     string
	}{
		{"clean", []any{"n1"}, "n1"},
		{"clean", []any{""}, ""},
		{"clean", []any{markup}, markup},
		{"clean", []any{turned}, `n\u202e4olleh\u202c\u200b`},
		{"clean", []any{backwards}, isolated(backwards)},
		{"clean", []any{"a\x00b\n"}, `a\u0000b\u000a`},
		{"clean", []any{"\xff"}, `\ufffd`},
		{"clean", []any{"naïve"}, isolated("naïve")},
		{"clean", []any{"\ufeffx"}, `\ufeffx`},
		{"clean", []any{"\u2068x"}, `\u2068x`},
		{"clean", []any{strings.Repeat("x", 200)}, strings.Repeat("x", 128) + "…"},
		{"line", []any{"a\nb\tc\a\u202e"}, `a b c\u0007\u202e`},
		{"line", []any{"x " + isolated(backwards)}, "x " + isolated(backwards)},
		{"short", []any{isolated("שלום"), 3}, isolated("ש…")},
		{"list", []any{[]string{}, 5}, ""},
		{"list", []any{[]string{"n1"}, 5}, "n1"},
		{"list", []any{[]string{"n1", "n2", "n3"}, 3}, "n1, n2 and n3"},
		{"list", []any{[]string{"n1", "n2", "n3", "n4"}, 3}, "n1, n2 and 2 more"},
		{"number", []any{1234567}, "1,234,567"},
		{"sentence", []any{" a. "}, "a."},
		{"sentence", []any{" "}, ""},
	} {
		require.Equal(t, tc.want, browser.Eval[string](p, call(t, tc.function, tc.args...)), "%s%q",
			tc.function, tc.args)
	}
	type at struct{ At string }
	for offset, want := range map[int]string{0: "2026-03-14 12:00:00", 3600: "2026-03-14 13:00:00",
		-43200: "2026-03-14 00:00:00"} {
		e := browser.Eval[at](p, call(t, "entry", map[string]any{"at": noon, "kind": "told", "text": ""},
			map[string]any{"name": "X", "offset": offset}))
		require.Equal(t, want, e.At, "where the member runs")
	}
}
