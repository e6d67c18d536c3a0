package web

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func seen(f *fake) *view { return viewOf(read(f)) }

func TestHeadline(t *testing.T) {
	with := func(f *fake, change func(*fake)) *fake { return f.set(change) }
	for _, tc := range []struct {
		name           string
		f              *fake
		tone, headline string
		detail         string
	}{
		{"alone", whole(1), toneCalm, "This member is alone: it knows no other.", ""},
		{"two", whole(2), toneCalm, "Both members reach each other.", ""},
		{"whole", whole(1234), toneCalm, "All 1,234 members reach each other.", ""},
		{
			"whole, but not ready", with(whole(5), func(f *fake) { f.health.Ready = Check{Reason: "the stock agent is silent"} }),
			toneWait, "All 5 members reach each other.", "Not ready: the stock agent is silent.",
		},
		{"whole, but no resolver on one", with(whole(5), func(f *fake) { f.status.Untagged = []string{"n5"} }), toneWait, "All 5 members reach each other.", ""},
		{"others do not reach each other", indirectly(), toneWait, "This member reaches all, but n2 does not reach n5; 2 more such reports.", ""},
		{
			"starting", with(whole(2), func(f *fake) {
				f.status.State, f.health.Ready = sbr.StateArming, Check{Reason: "2 of at least 3 members are present"}
			}),
			toneWait, "This member is starting: it sees 2 members and decides nothing yet.", "Not ready: 2 of at least 3 members are present.",
		},
		{
			"it waits before it takes part", with(whole(1), func(f *fake) {
				f.status.State, f.status.StartingBecause = downing.StateStarting, "the lease s-sbr cannot be used: it is forbidden"
			}),
			toneBad, "This member does not take part yet.", "The reason: the lease s-sbr cannot be used: it is forbidden.",
		},
		{"one is gone", whole(3).lose(1), toneBad, "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable. No decision is due yet."},
		{"many are gone", whole(500).lose(200), toneBad, "200 of 500 members are unreachable: n301, n302, n303, n304 and 196 more.", "It began with: n301 is unreachable. No decision is due yet."},
		{"a decision is due", whole(3).lose(1).deadline(noon, noon), toneBad, "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable."},
		{
			"another one leads", with(whole(3).lose(1), func(f *fake) { f.status.Leader, f.status.Responsible = "n2", false }),
			toneBad, "1 of 3 members is unreachable: n3.", "It began with: n3 is unreachable. n2 leads this side and decides.",
		},
		{
			"after a pause", with(whole(3), func(f *fake) {
				f.status.State, f.status.SuspendedBecause = sbr.StateSuspended, "this process did not run for 40s"
			}),
			toneBad, "Suspended: this member does not know its fate yet.", "It began with: this process did not run for 40s. No decision is due yet.",
		},
		{"waiting", whole(5).lose(2).waits(), toneBad, "2 of 5 members are unreachable: n4 and n5; this side waits for the lease.", "When last heard of, n4 held it."},
		{
			"waiting for a free lease", with(whole(5).lose(2).waits(), func(f *fake) { f.status.Lease.Holder = "" }),
			toneBad, "2 of 5 members are unreachable: n4 and n5; this side waits for the lease.", "When last heard of, nobody held it.",
		},
		{
			"waiting for its own lease", with(whole(5).waits(), func(f *fake) { f.status.Lease.Holder = f.status.Incarnation }),
			toneBad, "This side waits for the lease payments-sbr.", "When last heard of, this member held it.",
		},
		{"resolved", decided(5, 2), toneCalm, "All 3 members reach each other.", "2 downed members are kept out: n4 and n5."},
		{
			"down", lost(), toneDown,
			"This member was downed: verdict 4 by n1 does not list this member among its survivors: 3 of 5 counted members are reachable, a majority.",
			"It must not work any more. Started again, it comes back as a new incarnation.",
		},
		{
			"down, known from its health alone", with(whole(1), func(f *fake) {
				f.status.State, f.health.Live = sbr.StateDown, Check{Reason: "down: the resolver failed"}
			}), toneDown,
			"This member was downed: the resolver failed.", "It must not work any more. Started again, it comes back as a new incarnation.",
		},
		{
			"down, nobody says why", with(whole(1), func(f *fake) { f.status.State, f.health = sbr.StateDown, Health{} }), toneDown,
			"This member was downed.", "It must not work any more. Started again, it comes back as a new incarnation.",
		},
		{
			"the loop is stuck", with(whole(3), func(f *fake) { f.health.Live = Check{Reason: "the loop has not moved for 30s"} }), toneBad,
			"The resolver does not work: the loop has not moved for 30s.", "A node whose resolver fails goes down.",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := seen(tc.f)
			require.Equal(t, tc.headline, v.Headline)
			require.Equal(t, tc.detail, v.Detail)
			require.Equal(t, tc.tone, v.Tone)
			require.True(t, strings.HasPrefix(v.Title, toneSigns[tc.tone]+" n1 ") || strings.HasPrefix(v.Title, "■ n5 down"), v.Title)
		})
	}
}

func TestCountdown(t *testing.T) {
	at := noon.Add(20 * time.Second)
	f := whole(5).lose(2).deadline(noon, at)
	require.Equal(t, &countdown{Text: "A decision at " + clock(at), At: "2026-03-14T12:00:20Z", Until: at.UnixMilli(), From: noon.UnixMilli()}, seen(f).Countdown)
	f.status.Leader, f.status.Responsible = "n2", false
	require.Equal(t, "Without a decision by n2, this member decides at "+clock(at), seen(f).Countdown.Text)
	require.Equal(t, "The next step at "+clock(at), seen(f.waits()).Countdown.Text)
	f.status.State = sbr.StateDown
	require.Nil(t, seen(f).Countdown, "nothing is decided here any more")
	require.Nil(t, seen(whole(5)).Countdown)
}

func TestWarnings(t *testing.T) {
	f := whole(20)
	require.Empty(t, seen(f).Warnings)
	f.status.Disagree, f.status.Untagged = []string{"n2"}, []string{"n3", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11"}
	w := seen(f).Warnings
	require.Len(t, w, 2)
	require.True(t, strings.HasPrefix(w[0], "1 member has another configuration: n2. "), w[0])
	require.True(t, strings.HasPrefix(w[1], "9 members run no resolver: n3, n4, n5, n6, n7, n8, n9 and 2 more. "), w[1])
}

func TestVerdict(t *testing.T) {
	require.Nil(t, seen(whole(3)).Verdict)
	v := seen(decided(40, 13)).Verdict
	require.Equal(t, "This member is among the survivors.", v.Fate)
	require.Equal(t, "27 of 40 counted members are reachable, a majority.", v.Reason)
	require.Equal(t, "n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11 and 16 more", v.Survivors.Short)
	require.Contains(t, v.Survivors.All, "n26 and n27")
	require.Equal(t, "n4 and n5", seen(decided(5, 2)).Verdict.Down.Short)
	require.Empty(t, seen(decided(5, 2)).Verdict.Down.All, "nothing more to be said")
	require.Equal(t, "This member was to go down.", seen(lost()).Verdict.Fate)
	unnamed := lost()
	unnamed.status.Verdict.Down = nil
	require.Equal(t, "This member is not among the survivors.", seen(unnamed).Verdict.Fate)
	newer := decided(5, 2)
	newer.status.Incarnation = uid("n9")
	require.Equal(t, "This member came later.", seen(newer).Verdict.Fate)
}

// kinds counts the links of a drawing.
func kinds(v *view) map[string]int {
	all := make(map[string]int)
	for _, l := range v.Ring.Links {
		all[l.Kind]++
	}
	return all
}

func TestRing_Links(t *testing.T) {
	require.Equal(t, map[string]int{"open": 10}, kinds(seen(whole(5))))
	require.Equal(t, map[string]int{"open": 3, "cut": 6}, kinds(seen(whole(5).lose(2))), "of the two that are gone nothing is known")
	require.Equal(t, map[string]int{"open": 13, "cut": 1, "one-way": 1}, kinds(seen(indirectly())))
	require.Equal(t, map[string]int{"open": 3}, kinds(seen(decided(5, 2))), "a downed member has no links")
	require.Empty(t, kinds(seen(whole(25))), "of many only the broken ones")
	own := whole(3)
	own.status.Members[2].Reachable = false
	require.Equal(t, map[string]int{"open": 1, "cut": 1}, kinds(seen(own)), "what this member sees is known without a report")
	require.Contains(t, seen(indirectly()).Ring.Links, link{Kind: "one-way", From: 5, To: 2}, "n3 does not reach n6: the way from n6 to n3 works")
	f := whole(inRing)
	for i := range f.status.Members {
		for j := range f.status.Members {
			f.status.Reports = append(f.status.Reports, downing.ReportStatus{Observer: f.status.Members[i].Name, Subject: f.status.Members[j].Name})
		}
	}
	require.Len(t, seen(f).Ring.Links, maxLinks)
}

// Shapes and signs tell the members apart, not colours.
func TestRing_Nodes(t *testing.T) {
	f := whole(5).lose(2)
	f.status.Members[2].Status = "down"
	f.status.Lease.Holder = uid("n2")
	n := seen(f).Members
	require.Equal(t, kindReached, n[0].Kind)
	require.True(t, n[0].Self)
	require.Equal(t, "★A", n[0].Inside)
	require.Equal(t, "this member", n[0].Word)
	require.Equal(t, "A", n[1].Inside)
	require.True(t, n[1].Holder)
	require.Equal(t, "■", n[2].Inside)
	require.Equal(t, "B", n[3].Inside)
	require.Equal(t, "unreachable", n[3].Word)
	require.Equal(t, []string{kindReached, kindDowned, kindMissed}, []string{n[1].Kind, n[2].Kind, n[3].Kind})
	require.Equal(t, "n4: unreachable; not reached by n1, n2 and n3", n[3].Title)
}

func TestRing_OfSoManyAlone(t *testing.T) {
	require.NotNil(t, seen(whole(inRing)).Ring)
	require.Nil(t, seen(whole(inRing+1)).Ring)
}

func TestGroups(t *testing.T) {
	f := whole(100).lose(20)
	f.status.Members[50].Status = "down"
	f.status.Untagged, f.status.Lease.Holder = []string{"n2"}, uid("n1")
	v := seen(f)
	require.Len(t, v.Groups, 3)
	require.Equal(t, "20 cannot be reached from here (side B)", v.Groups[0].Title)
	require.Equal(t, "79 on this side (side A)", v.Groups[1].Title)
	require.Equal(t, "1 downed", v.Groups[2].Title)
	require.Equal(t, []string{kindMissed, kindReached, kindDowned}, []string{v.Groups[0].Kind, v.Groups[1].Kind, v.Groups[2].Kind})
	first, n1, n2 := v.Members[0], v.Members[20], v.Members[21]
	require.Equal(t, []string{"n81", "n1", "n2"}, []string{first.Name, n1.Name, n2.Name})
	require.Equal(t, "n81: unreachable; not reached by n1, n2, n3 and 2 more", first.Title)
	require.Equal(t, []string{"✕5", "★◆", "⚠"}, []string{first.Sign, n1.Sign, n2.Sign})
	require.Equal(t, "n81", v.Members[0].Name, "what matters comes first")
	require.Equal(t, "n51", v.Members[99].Name)
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"n1": "n1", "": "", markup: markup, turned: `n\u202e4olleh\u202c\u200b`, backwards: "\u2068" + backwards + "\u2069", "a\x00b\n": `a\u0000b\u000a`,
		"\xff": `\ufffd`, "naïve": "\u2068naïve\u2069", "\ufeffx": `\ufeffx`, "\u2068x": `\u2068x`, strings.Repeat("x", 200): strings.Repeat("x", 128) + "…",
	} {
		require.Equal(t, want, clean(in), "%q", in)
	}
	require.Equal(t, `a b c\u0007\u202e`, line("a\nb\tc\a\u202e"))
	require.Equal(t, line("x "+clean(backwards)), line(line("x "+clean(backwards))), "twice does no harm")
	require.Equal(t, "\u2068ש…\u2069", short(clean("שלום"), 3))
}

// FuzzClean: what is shown has no character that is hidden, and isolates what might turn.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"n1", markup, turned, backwards, endless, "\xff\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := clean(s)
		inside := strings.TrimSuffix(strings.TrimPrefix(c, string(isolate)), string(isolated))
		require.NotContains(t, inside, string(isolate))
		for _, r := range inside {
			require.False(t, hidden(r), "%q in %q", r, c)
		}
		require.Equal(t, line(c), c)
	})
}

func TestWords(t *testing.T) {
	require.Equal(t, "n1", list([]string{"n1"}, 5))
	require.Equal(t, "", list(nil, 5))
	require.Equal(t, "n1, n2 and n3", list([]string{"n1", "n2", "n3"}, 3))
	require.Equal(t, "n1, n2 and 2 more", list([]string{"n1", "n2", "n3", "n4"}, 3))
	require.Equal(t, "1,234,567", number(1234567))
	require.Equal(t, "a.", sentence(" a. "))
	require.Equal(t, "", sentence(" "))
}
