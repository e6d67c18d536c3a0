package explore

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// part is the report of one of three parts of 60 seeds.
func part(t testing.TB, index int) *Report {
	t.Helper()
	r := &Report{Schema: Schema, Version: "v1", From: 1, To: 60, Shard: Shard{Index: index, Of: 3}, Elapsed: Span(time.Duration(index) * time.Second)}
	r.Take(Random(t.Context(), RandomOptions{From: 1, To: 60, Shard: r.Shard, Generate: mixed(t)}))
	return r
}

func write(t testing.TB, r *Report) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(r))
	return b.Bytes()
}

// The reports of all parts, in any order, joined, are that of the whole.
func TestMerge_PartsMakeTheWhole(t *testing.T) {
	whole := &Report{Schema: Schema, Version: "v1", From: 1, To: 60, Shard: Shard{Index: 1, Of: 1}, Elapsed: Span(3 * time.Second)}
	whole.Take(Random(t.Context(), RandomOptions{From: 1, To: 60, Generate: mixed(t)}))
	require.EqualValues(t, 60, whole.Runs)
	require.Len(t, whole.Failures, 3)
	for _, order := range [][]int{{1, 2, 3}, {3, 1, 2}} {
		var parts []NamedReport
		for _, i := range order {
			r, err := ReadReport("part.json", write(t, part(t, i)))
			require.NoError(t, err)
			parts = append(parts, NamedReport{Name: "part.json", Report: r})
		}
		all, err := Merge(parts)
		require.NoError(t, err)
		require.Equal(t, string(write(t, whole)), string(write(t, all)))
	}
}

// A whole is a report like any other.
func TestMerge_WholeCanBeReadAgain(t *testing.T) {
	all, err := Merge([]NamedReport{{"a", part(t, 1)}, {"b", part(t, 2)}, {"c", part(t, 3)}})
	require.NoError(t, err)
	back, err := ReadReport("all.json", write(t, all))
	require.NoError(t, err)
	require.Equal(t, string(write(t, all)), string(write(t, back)))
}

func TestMerge_RefusesWhatIsNoWhole(t *testing.T) {
	a, b, c := NamedReport{"a.json", part(t, 1)}, NamedReport{"b.json", part(t, 2)}, NamedReport{"c.json", part(t, 3)}
	changed := func(n NamedReport, f func(r *Report)) NamedReport {
		r := *n.Report
		f(&r)
		return NamedReport{n.Name, &r}
	}
	for why, parts := range map[string][]NamedReport{
		"there is none":     {},
		"missing: 2/3, 3/3": {a},
		"missing: 1/3":      {c, b},
		"the shard 2/3 is there twice: b.json and d.json":   {a, b, c, {"d.json", b.Report}},
		"b.json is of version v2, a.json of v1":             {a, changed(b, func(r *Report) { r.Version = "v2" }), c},
		"b.json is about the seeds 1-61, a.json about 1-60": {a, changed(b, func(r *Report) { r.To = 61 }), c},
		"b.json is about the seeds 0-60, a.json about 1-60": {a, changed(b, func(r *Report) { r.From = 0 }), c},
		"b.json had a budget of 1s, a.json of 0s":           {a, changed(b, func(r *Report) { r.For = Span(time.Second) }), c},
		"b.json is one of 4 shards, a.json one of 3":        {a, changed(b, func(r *Report) { r.Shard.Of = 4 }), c},
		"missing: 2/1000, 3/1000, 4/1000":                   {changed(a, func(r *Report) { r.Shard.Of = 1000 })},
		"20/1000, 21/1000, and 979 more":                    {changed(a, func(r *Report) { r.Shard.Of = 1000 })},
	} {
		_, err := Merge(parts)
		require.ErrorIs(t, err, ErrMerge)
		require.ErrorContains(t, err, why)
	}
}

// What was only provoked in a part may be taken by chance in another, so joining begins anew.
func TestMerge_ProvokedCountsAsNeverTaken(t *testing.T) {
	rare := ""
	for _, k := range KnownTransitions() {
		if k.Provoke != "" {
			rare = k.Name
		}
	}
	one := func(index int, provoked bool) NamedReport {
		r := &Report{Version: "v1", From: 1, To: 2, Shard: Shard{Index: index, Of: 2}, Coverage: map[string]uint64{rare: 5}}
		if provoked {
			r.Provoked = []string{rare}
		}
		return NamedReport{"x", r}
	}
	all, err := Merge([]NamedReport{one(1, true), one(2, true)})
	require.NoError(t, err)
	require.Contains(t, all.Never, rare)
	all, err = Merge([]NamedReport{one(1, true), one(2, false)})
	require.NoError(t, err)
	require.NotContains(t, all.Never, rare)
	require.EqualValues(t, 5, all.Coverage[rare])
}

// A part that was interrupted, or whose time was over, makes a whole that is.
func TestMerge_IncompletePartsMakeAnIncompleteWhole(t *testing.T) {
	a, b, c := part(t, 1), part(t, 2), part(t, 3)
	b.Complete, b.Interrupted = false, true
	all, err := Merge([]NamedReport{{"a", a}, {"b", b}, {"c", c}})
	require.NoError(t, err)
	require.False(t, all.Complete)
	require.True(t, all.Interrupted)
}

func TestReadReport_IsStrict(t *testing.T) {
	good := string(write(t, part(t, 1)))
	_, err := ReadReport("x.json", []byte(good))
	require.NoError(t, err)
	for why, change := range map[string][2]string{
		"x.json:2: schema: is 2: this version reads 1":                            {`"schema": 1`, `"schema": 2`},
		"x.json:2: shema: unknown key; the nearest known key is schema":           {`"schema"`, `"shema"`},
		"x.json:3: version: is not set":                                           {`"v1"`, `""`},
		"x.json:5: to: expected a whole number of at least 0":                     {`"to": 60`, `"to": -60`},
		"x.json:5: to: is 9007199254740993: the largest seed is 9007199254740992": {`"to": 60`, `"to": 9007199254740993`},
		"x.json:4: from: is 61, after the last seed 60":                           {`"from": 1`, `"from": 61`},
		"x.json:6: for: must be a duration such as 90s":                           {`"for": "0s"`, `"for": "soon"`},
		"x.json:7: shard: 4/3: shards count from 1/3 to 3/3":                      {`"shard": "1/3"`, `"shard": "4/3"`},
		"x.json:9: runs: are 21, but the shard has 20 seeds":                      {`"runs": 20`, `"runs": 21`},
		"x.json:12: complete: is true, but 19 of 20 seeds were played":            {`"runs": 20`, `"runs": 19`},
		"x.json:10: failed: are 0, but":                                           {`"failed": 6`, `"failed": 0`},
		"x.json:13: interrupted: is true, but all seeds were played":              {`"interrupted": false`, `"interrupted": true`},
		"x.json:14: elapsed: is -1s: it must not be negative":                     {`"elapsed": "1s"`, `"elapsed": "-1s"`},
		"failures[1].promise: is not set":                                         {`"promise": "S1"`, `"promise": ""`},
		"failures[0].runs: are 9 of 6 failed ones":                                {`"runs": 2,`, `"runs": 9,`},
		"it must be 1 to 8796093022208":                                           {`"arming + Deadline -> up: Explain(armed)": `, `"arming + Deadline -> up: Explain(armed)": 99999999999999`},
		"set twice, first on line":                                                {`"coverage": {`, `"coverage": {}, "coverage": {`},
		"not YAML or JSON":                                                        {`"schema": 1,`, `"schema": [1,`},
	} {
		require.Contains(t, good, change[0], why)
		text := strings.Replace(good, change[0], change[1], 1)
		_, err := ReadReport("x.json", []byte(text))
		require.ErrorContains(t, err, why)
		require.NotContains(t, err.Error(), "\n\n")
	}
	_, err = ReadReport("x.json", nil)
	require.ErrorContains(t, err, "the input is empty")
	_, err = ReadReport("x.json", make([]byte, MaxReportBytes+1))
	require.ErrorContains(t, err, "the input is larger than")
	_, err = ReadReport("x.json", []byte("{}"))
	require.ErrorContains(t, err, "x.json: schema: is 0: this version reads 1")
}

// What is never taken and what is new depends on the list of the program that reads, not on what the file says of it.
func TestReadReport_WorksOutTheTransitionsAnew(t *testing.T) {
	r := part(t, 1)
	r.Never, r.New = []string{"x"}, []string{"y"}
	back, err := ReadReport("x.json", write(t, r))
	require.NoError(t, err)
	require.NotContains(t, back.Never, "x")
	require.NotContains(t, back.New, "y")
	require.NotEmpty(t, back.Never)
}

// The scenario of a failure survives the way through a file.
func TestReadReport_KeepsScenarios(t *testing.T) {
	r := part(t, 3)
	f := r.Failures[0]
	_, err := f.Shrink(t.Context(), func(uint64) *scenario.Scenario { return twoSides(t, 7) }, 50)
	require.NoError(t, err)
	back, err := ReadReport("x.json", write(t, r))
	require.NoError(t, err)
	require.Equal(t, f, back.Failures[0])
	_, err = scenario.Parse("x.yaml", []byte(back.Failures[0].Scenario))
	require.NoError(t, err)
}

// Whatever the file is, reading it ends without a panic; what is read can be written and read again, and is the same.
func FuzzReadReport(f *testing.F) {
	f.Add(write(f, part(f, 1)))
	f.Add([]byte(`{"schema": 1, "version": "v", "from": 0, "to": 0, "shard": "1/1", "runs": 1, "complete": true}`))
	f.Add([]byte("schema: 1\nversion: v\nshard: 1/2\nto: 9\nfor: 1s\ncoverage: {a: 1}"))
	f.Add([]byte(`{"failures": [null], "coverage": {"": 18446744073709551615}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ReadReport("x", data)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		once := write(t, r)
		back, err := ReadReport("x", once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(write(t, back)))
	})
}
