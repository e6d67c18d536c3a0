package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// script is lines of resource a, in milliseconds: "at member token kind", a ! before it for a refused one.
func script(t *testing.T, text ...string) (lines []Line) {
	for _, s := range text {
		l := Line{Accepted: s[0] != '!', Entry: Entry{Resource: "a"}}
		var at int
		n, err := fmt.Sscanf(string(bytes.TrimPrefix([]byte(s), []byte("!"))), "%d %s %d %s", &at, &l.Member,
			&l.Token, &l.Kind)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		l.At, l.Run = time.Duration(at)*time.Millisecond, l.Member
		require.NoError(t, l.Validate())
		lines = append(lines, l)
	}
	return lines
}

const ms = time.Millisecond

func TestAnalyse_SharedTokens(t *testing.T) {
	r := Analyse(script(t, "1 n1 3 work", "2 n2 4 work", "3 n1 5 work", "!4 n1 4 work"))
	require.Equal(t, []SharedToken{{"a", 4, []string{"n2", "n1"}}}, r.Shared)
	require.False(t, r.Clean())
	require.Empty(t, r.Violations)
}

// The longest overlap need not be the last one.
func TestAnalyse_OverlapsInAll(t *testing.T) {
	r := Analyse(script(t, "1 n1 1 work", "2 n2 2 work", "3 n3 3 work", "!4 n1 1 work", "!5 n2 2 work",
		"6 n3 3 work",
		"5000 n3 3 work", "5001 n4 4 work", "!5003 n3 3 work", "5004 n4 4 work"))
	require.Equal(t, []Overlap{{"a", 2 * ms, 5 * ms, 2}, {"a", 5001 * ms, 5003 * ms, 1}}, r.Overlaps)
	require.Equal(t, Sum{5 * ms, 3 * ms, 3}, r.Overlap)
}

func TestSpread_NearestRank(t *testing.T) {
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i))
	}
	require.Equal(t, Spread{200, 100, 198, 200}, spread(times))
	require.Equal(t, Spread{1, 7, 7, 7}, spread([]time.Duration{7}))
	require.Equal(t, Spread{}, spread(nil))
}

func TestReport_Text(t *testing.T) {
	r := Analyse(script(t, "1 n1 3 work", "2 n1 3 stop", "20 n2 4 work", "21 n1 3 work", "30 n2 4 work",
		"!31 n1 4 work"))
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Equal(t, `lines              6  5 accepted, 1 refused; 1 resources, 3 runs
out of order       1  accepted with an older token after a newer one
shared tokens      1  had by runs on several members
overlaps           1  1ms in all, the longest 1ms; 0 writes in them refused
planned changes    1  without work: p50 19ms, p99 19ms, max 19ms
unplanned changes  0  without work: p50 0s, p99 0s, max 0s
! a, 21ms: token 3 of n1 after token 4
! a: token 4 was had by [n2 n1]
`, text.String())
}

// twin is Analyse by its definitions: it looks at each moment and each pair of lines.
type twin struct{ lines []Line }

func (w twin) sameRun(a, b Line) bool {
	return a.Resource == b.Resource && a.Member == b.Member && a.Run == b.Run && a.Token == b.Token
}

// writing reports whether the run of l is writing at a moment: it has an attempt at or before that, one at or
// after that, and no longer pause around it.
func (w twin) writing(l Line, moment time.Duration) bool {
	before, after := time.Duration(-1), time.Duration(-1)
	for _, o := range w.lines {
		if w.sameRun(o, l) && o.At <= moment {
			before = o.At
		}
		if w.sameRun(o, l) && o.At >= moment && after < 0 {
			after = o.At
		}
	}
	return before >= 0 && after >= 0 && after-before <= Pause
}

// crowded reports whether two runs of a resource are writing at a moment.
func (w twin) crowded(resource string, moment time.Duration) bool {
	for _, a := range w.lines {
		for _, b := range w.lines {
			if a.Resource == resource && b.Resource == resource && !w.sameRun(a, b) && w.writing(a, moment) &&
				w.writing(b, moment) {
				return true
			}
		}
	}
	return false
}

// overlaps goes through all half steps: between two of them nothing changes.
func (w twin) overlaps(resource string, step, end time.Duration) (all []Overlap) {
	inside := false
	for at := time.Duration(0); at <= end; at += step / 2 {
		now := w.crowded(resource, at)
		switch {
		case now && !inside:
			all = append(all, Overlap{Resource: resource, From: at, To: at})
		case now:
			all[len(all)-1].To = at
		}
		inside = now
	}
	for i := range all {
		for _, l := range w.lines {
			if l.Resource == resource && !l.Accepted && l.At >= all[i].From && l.At <= all[i].To {
				all[i].Refused++
			}
		}
	}
	return all
}

func (w twin) violations() (all []Violation) {
	for i, l := range w.lines {
		newest := uint64(0)
		for _, o := range w.lines[:i] {
			if o.Accepted && o.Resource == l.Resource {
				newest = max(newest, o.Token)
			}
		}
		if l.Accepted && newest > l.Token {
			all = append(all, Violation{l.Resource, l.At, l.Token, newest, l.Member})
		}
	}
	return all
}

// changes finds the first accepted work of each run, and for each but the first one the last work before it
// of the run that began before it.
func (w twin) changes(resource string) (all []Change) {
	var firsts []Line
	for i, l := range w.lines {
		mine := func(o Line) bool { return w.sameRun(o, l) && o.Accepted && o.Kind == Work }
		if l.Resource == resource && mine(l) && !slices.ContainsFunc(w.lines[:i], mine) {
			firsts = append(firsts, l)
		}
	}
	for i := 1; i < len(firsts); i++ {
		old, begun := firsts[i-1], firsts[i]
		c := Change{Resource: resource, From: old.Member, To: begun.Member, At: begun.At}
		for _, o := range w.lines {
			if w.sameRun(o, begun) && o.Accepted {
				c.Began = o.At
				break
			}
		}
		for _, o := range w.lines {
			if w.sameRun(o, old) && o.Accepted && o.At < begun.At {
				c.Ended = o.At
			}
		}
		for _, o := range w.lines {
			if w.sameRun(o, old) && o.At < begun.At {
				c.Planned = c.Planned || o.Kind == Stop
				if o.Kind == Work {
					c.Gap = begun.At - o.At
				}
			}
		}
		all = append(all, c)
	}
	return all
}

func TestProperty_AnalyseAgainstADumbTwin(t *testing.T) {
	const step = Pause / 4
	rapid.Check(t, func(t *rapid.T) {
		var lines []Line
		at := time.Duration(0)
		for range rapid.IntRange(0, 14).Draw(t, "lines") {
			at += step * time.Duration(rapid.IntRange(1, 6).Draw(t, "later"))
			lines = append(lines, Line{
				At: at, Token: rapid.Uint64Range(1, 3).Draw(t, "token"),
				Accepted: rapid.IntRange(0, 3).Draw(t, "refused") > 0,
				Entry: Entry{
					Resource: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "resource"),
					Member:   rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "member"),
					Run:      rapid.SampledFrom([]string{"1", "2"}).Draw(t, "run"),
					Kind:     rapid.SampledFrom([]Kind{Work, Work, Work, Start, Stop}).Draw(t, "kind"),
				},
			})
		}
		w := twin{lines}
		r := Analyse(lines)
		byResource := slices.Clone(r.Violations)
		slices.SortFunc(byResource, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
		require.Equal(t, w.violations(), byResource)
		require.Equal(t, append(w.overlaps("a", step, at), w.overlaps("b", step, at)...), r.Overlaps)
		var sum Sum
		for _, o := range r.Overlaps {
			sum = Sum{sum.Total + o.To - o.From, max(sum.Max, o.To-o.From), sum.Refused + o.Refused}
		}
		require.Equal(t, sum, r.Overlap)
		require.Equal(t, len(r.Violations) == 0 && len(r.Shared) == 0, r.Clean())
		require.Equal(t, append(w.changes("a"), w.changes("b")...), r.Changes)
		require.Equal(t, len(lines), r.Accepted+r.Refused)
		require.Equal(t, len(r.Changes), r.Planned.N+r.Unplanned.N)
		for _, s := range r.Shared {
			require.Greater(t, len(s.Members), 1)
		}
	})
}
