package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// split is the scenario of the documentation: three against two.
const split = `
name: three against two
cluster: {nodes: 5, detection: {after: 4s, spread: 1s, heal: 1s}}
steps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]
run-for: 120s
expect: {survivors: [n1, n2, n3]}`

func parsed(t testing.TB) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(split))
	require.NoError(t, err)
	return s
}

func recorded(t testing.TB, seed uint64) Run {
	t.Helper()
	return Run{Result: scenario.Run(parsed(t), seed), File: "x.yaml", Sentence: "What it shows.",
		Replay: fmt.Sprintf("sbr simulate x.yaml --seeds %d", seed)}
}

// written is the page of runs, and what its script finds in it.
func written(t testing.TB, runs ...Run) (text string, data content) {
	t.Helper()
	p := New()
	for _, r := range runs {
		require.NoError(t, p.Add(r, func() scenario.Result { return r.Result }))
	}
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	root, err := html.Parse(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	for n := range root.Descendants() {
		if n.Data == "script" && len(n.Attr) > 0 {
			require.NoError(t, json.Unmarshal([]byte(n.FirstChild.Data), &data))
		}
	}
	return b.String(), data
}

type content struct {
	Runs, Failed, Unlisted int
	Groups                 []struct {
		group
		Run scenario.Result `json:"run"`
	}
}

// What is in the page is what -o json writes, field by field.
func TestWrite_HasTheRunAsJSONHasIt(t *testing.T) {
	r := recorded(t, 1)
	page, data := written(t, r)
	want, err := json.Marshal(r.Result)
	require.NoError(t, err)
	require.Contains(t, page, string(want))
	require.Equal(t, 1, data.Runs)
	require.Equal(t, "What it shows.", data.Groups[0].Sentence)
	again, _ := written(t, recorded(t, 1))
	require.Equal(t, page, again, "the same runs give the same bytes")
	require.Less(t, len(page), 200_000)
}

// Names come from files that any author may have written: none of them leaves the data.
func TestWrite_HostileNamesAreText(t *testing.T) {
	calm, _ := written(t, recorded(t, 1))
	for _, name := range []string{"</script><script>alert(1)</script>", "<!--", "]]>", "{{script}}", "{{runs}}",
		"\u2028\u2029", `"\`} {
		r := recorded(t, 1)
		r.Scenario, r.Sentence, r.Survivors, r.History.Members[0] = name, name, []string{name}, name
		page, data := written(t, r)
		require.Equal(t, name, data.Groups[0].Run.Scenario)
		require.Equal(t, name, data.Groups[0].Run.History.Members[0])
		for _, tag := range []string{"<script", "</script>", "<!--"} {
			require.Equal(t, strings.Count(calm, tag), strings.Count(page, tag), name)
		}
	}
}

// One group: the same file, scenario, survivors, downed members, decisions and kinds of failures. Failed
// groups come first.
func TestAdd_GroupsWhatCameToTheSame(t *testing.T) {
	run := func(seed uint64, change func(*Run)) Run {
		r := recorded(t, 1)
		r.Seed = seed
		if change != nil {
			change(&r)
		}
		return r
	}
	fails := func(text string) func(*Run) { return func(r *Run) { r.Passed, r.Failures = false, []string{text} } }
	_, data := written(t,
		run(1, nil), run(2, nil), run(3, func(r *Run) { r.File = "y.yaml" }), run(4, nil),
		run(5, func(r *Run) { r.Survivors = []string{"n4"} }),
		run(6, func(r *Run) { r.Decisions = map[string]string{"n4": "down-all"} }), run(7, nil),
		run(8, fails("S1 broken at 20.000s: n1 and n4")), run(9, fails("S1 broken at 30.000s: n2 and n5")),
		run(10, fails("survivors: expected [n1]")))
	var seeds []string
	for _, g := range data.Groups {
		seeds = append(seeds, g.Seeds)
	}
	require.Equal(t, []string{"8-9", "10", "1-2, 4, 7", "3", "5", "6"}, seeds)
	require.Equal(t, 10, data.Runs)
	require.Equal(t, 3, data.Failed)
	require.Equal(t, 4, data.Groups[2].Resolved.Runs)
	require.Equal(t, "8", fmt.Sprint(data.Groups[0].Run.Seed), "the first one is drawn")
}

// The first run of a group is played again for its history. If that is another run, the page would say what
// was not so.
func TestAdd_PlaysTheFirstAgain(t *testing.T) {
	again := 0
	p, full := New(), scenario.Run(parsed(t), 1)
	for range 3 {
		require.NoError(t, p.Add(Run{Result: scenario.Judge(parsed(t), 1), File: "x.yaml"},
			func() scenario.Result { again++; return full }))
	}
	require.Equal(t, 1, again)
	require.ErrorContains(t, p.Add(Run{Result: scenario.Judge(parsed(t), 1), File: "y.yaml"},
		func() scenario.Result {
			return scenario.Run(parsed(t), 2)
		}), "report: y.yaml, seed 1: played twice, and the runs differ: "+full.TraceHash+" and ")
}

// What there is no room for is counted.
func TestAdd_SaysWhatIsMissing(t *testing.T) {
	r := recorded(t, 1)
	for len(r.Events) < 2*maxEvents {
		r.Events = append(r.Events, scenario.Event{At: "100s", Node: "n1", Kind: "asks", Detail: "attempt"})
	}
	_, data := written(t, r)
	require.Len(t, data.Groups[0].Run.Events, maxEvents)
	require.Equal(t, maxEvents, data.Groups[0].Left)
	for _, e := range data.Groups[0].Run.Events {
		require.NotEqual(t, "detects", e.Kind, "what all do alike is left out first")
	}

	r = recorded(t, 1)
	r.History.Watched = []string{"n1"}
	_, data = written(t, r)
	require.Positive(t, data.Groups[0].Left)
	require.Len(t, data.Groups[0].Run.Events, len(r.Events)-data.Groups[0].Left)
	for _, e := range data.Groups[0].Run.Events {
		require.False(t, e.Node == "n4" && e.Kind == "detects", "the views of n4 are not drawn")
	}

	p := New()
	p.bytes[true] = maxBytes
	require.NoError(t, p.Add(r, nil))
	require.Less(t, len(p.groups[0].Run), 1000, "the result without history")
}

func TestSeedWords(t *testing.T) {
	require.Equal(t, "1, 3-5", seedWords([]seedRange{{1, 1}, {3, 5}}))
	require.True(t, strings.HasSuffix(seedWords(make([]seedRange, maxRanges+1)), " and more"))
}
