package strictyaml_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

type times struct {
	Timeout  *time.Duration `yaml:"heartbeat-timeout"`
	Interval time.Duration  `yaml:"heartbeat-interval"`
}

type count struct {
	N    int
	List []string
}

func (c *count) Target(s strictyaml.Shape) any {
	switch s {
	case strictyaml.Scalar:
		return &c.N
	case strictyaml.List:
		return &c.List
	default:
		return nil
	}
}

func (c *count) Expected() string { return "a number or a list of names" }

type nested struct {
	StableAfter time.Duration            `yaml:"stable-after"`
	Unstable    strictyaml.OnOffDuration `yaml:"down-all-when-unstable"`
	Threshold   strictyaml.OnOffFraction `yaml:"threshold"`
	Watch       strictyaml.Switch        `yaml:"watch"`
	Alone       bool                     `yaml:"alone"`
}

type document struct {
	System  string            `yaml:"system"`
	Size    int               `yaml:"size"`
	Port    uint16            `yaml:"port"`
	Share   float64           `yaml:"share"`
	Roles   []string          `yaml:"roles"`
	Tags    map[string]string `yaml:"tags"`
	Nested  nested            `yaml:"nested"`
	Nodes   count             `yaml:"nodes"`
	Members []nested          `yaml:"members"`
	Times   times             `yaml:",inline"`
	Hidden  string
}

func decode(t *testing.T, text string) (document, error) {
	t.Helper()
	var d document
	return d, strictyaml.Decode([]byte(text), &d, strictyaml.Options{Name: "f.yaml"})
}

func TestDecode_ReadsYAMLAndJSON(t *testing.T) {
	timeout := 2 * time.Minute
	want := document{
		System: "payments", Size: 3, Port: 7946, Share: 0.25, Roles: []string{"a", "b"},
		Tags: map[string]string{"role": "web"},
		Nested: nested{StableAfter: 20 * time.Second, Unstable: strictyaml.OnOffDuration{On: true}, Threshold: 0.5,
			Watch: true, Alone: true},
		Nodes: count{List: []string{"n1", "n2"}},
		Times: times{Timeout: &timeout, Interval: 0},
	}
	for name, text := range map[string]string{
		"yaml": `
system: payments
size: 3
port: 7946
share: 0.25
roles: [a, b]
tags: {role: web}
nested: {stable-after: 20s, down-all-when-unstable: on, threshold: 0.5, watch: on, alone: on}
nodes: [n1, n2]
heartbeat-timeout: 120s
heartbeat-interval: 0
`,
		"json": `{"system":"payments","size":3,"port":7946,"share":0.25,"roles":["a","b"],"tags":{"role":"web"},
"nested":{"stable-after":"20s","down-all-when-unstable":"on","threshold":0.5,"watch":"on","alone":true},
"nodes":["n1","n2"],"heartbeat-timeout":"2m","heartbeat-interval":"0s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var got document
			require.NoError(t, strictyaml.Decode([]byte(text), &got, strictyaml.Options{}))
			require.Equal(t, want, got)
		})
	}
}

func TestDecode_AbsentKeysKeepDefaults(t *testing.T) {
	shared := time.Minute
	d := document{System: "default", Roles: []string{"x"}, Times: times{Timeout: &shared}}
	require.NoError(t, strictyaml.Decode([]byte("nested:\nroles: [y]\nheartbeat-timeout: 5s\n"), &d,
		strictyaml.Options{}))
	require.Equal(t, "default", d.System)
	require.Equal(t, []string{"y"}, d.Roles)
	require.Equal(t, 5*time.Second, *d.Times.Timeout)
	require.Equal(t, time.Minute, shared, "a default behind a pointer is never written through")
}

// A key that was in a map before begins with what it had; what the document does not name is gone.
func TestDecode_MapsKeepTheDefaultsOfTheirKeys(t *testing.T) {
	type block struct {
		A int `yaml:"a"`
		B int `yaml:"b"`
	}
	shared := &block{A: 1, B: 2}
	var got struct {
		Values   map[string]block  `yaml:"values"`
		Pointers map[string]*block `yaml:"pointers"`
	}
	got.Values = map[string]block{"x": {A: 1, B: 2}, "y": {A: 3}}
	got.Pointers = map[string]*block{"x": shared, "y": shared}
	require.NoError(t, strictyaml.Decode([]byte("values: {x: {b: 5}, z: {a: 7}}\npointers: {x: {a: 9}}"), &got,
		strictyaml.Options{}))
	require.Equal(t, map[string]block{"x": {A: 1, B: 5}, "z": {A: 7}}, got.Values)
	require.Equal(t, map[string]*block{"x": {A: 9, B: 2}}, got.Pointers)
	require.Equal(t, &block{A: 1, B: 2}, shared, "a default that others share stays as it is")
}

func TestDecode_NamesThePlace(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"unknown key", "sistem: a", `f.yaml:1: sistem: unknown key; the nearest known key is system`},
		{"unknown key below", "nested:\n  stable-afer: 1s", `f.yaml:2: nested.stable-afer: unknown key; the nearest known key is stable-after`},
		{"known elsewhere", "stable-after: 1s", `f.yaml:1: stable-after: unknown key here; the nearest known key is nested.stable-after`},
		{"unknown in a list", "members:\n - {alone: on}\n - {alon: on}", `f.yaml:3: members[1].alon: unknown key; the nearest known key is alone`},
		{"not a field", "Hidden: a", `f.yaml:1: Hidden: unknown key; the nearest known key is size`},
		{"twice", "system: a\nsystem: b", `f.yaml:2: system: set twice, first on line 1`},
		{"twice in a map", "tags: {a: b, a: c}", `f.yaml:1: tags.a: set twice, first on line 1`},
		{"text for a number", "size: many", `f.yaml:1: size: expected a whole number, found "many"`},
		{"quoted number", `size: "3"`, `f.yaml:1: size: expected a whole number, found the text "3"`},
		{"fraction for a number", "size: 1.5", `f.yaml:1: size: expected a whole number, found the number 1.5`},
		{"octal", "size: 010", `f.yaml:1: size: expected a whole number, found the number 010`},
		{"hexadecimal", "size: 0x10", `f.yaml:1: size: expected a whole number, found the number 0x10`},
		{"too large", "port: 65536", `f.yaml:1: port: expected a whole number of at least 0, found the number 65536`},
		{"negative", "port: -1", `f.yaml:1: port: expected a whole number of at least 0, found the number -1`},
		{"not a number", "share: .nan", `f.yaml:1: share: expected a number, found the number .nan`},
		{"infinite", "share: -.inf", `f.yaml:1: share: expected a number, found the number -.inf`},
		{"overflow", "share: 1e999", `f.yaml:1: share: expected a number, found "1e999"`},
		{"number for text", "system: 5", `f.yaml:1: system: expected text, found the number 5: put it in quotes`},
		{"nothing for text", "system:", `f.yaml:1: system: expected text, found nothing`},
		{"list for text", "system: [a]", `f.yaml:1: system: expected text, found a list`},
		{"text for a list", "roles: a", `f.yaml:1: roles: expected a list, found "a"`},
		{"list for keys", "nested: [a]", `f.yaml:1: nested: expected keys and values, found a list`},
		{"text for a map", "tags: a", `f.yaml:1: tags: expected keys and values, found "a"`},
		{"duration without unit", "heartbeat-interval: 20", `f.yaml:1: heartbeat-interval: expected a duration such as 20s, found the number 20: a unit is missing, such as 20s`},
		{"not a duration", "heartbeat-timeout: soon", `f.yaml:1: heartbeat-timeout: expected a duration such as 20s, found "soon"`},
		{"list for a duration", "heartbeat-timeout: []", `f.yaml:1: heartbeat-timeout: expected a duration such as 20s, found a list`},
		{"yes", "nested: {alone: yes}", `f.yaml:1: nested.alone: expected on or off, found "yes"`},
		{"switch", "nested: {watch: 1}", `f.yaml:1: nested.watch: expected on or off, found "1"`},
		{"nothing for a switch", "nested: {watch: }", `f.yaml:1: nested.watch: expected on or off, found nothing`},
		{"unstable 0", "nested: {down-all-when-unstable: 0s}", `f.yaml:1: nested.down-all-when-unstable: is 0s: it must be more than 0s, or off`},
		{"unstable negative", "nested: {down-all-when-unstable: -3s}", `f.yaml:1: nested.down-all-when-unstable: is -3s: it must be more than 0s, or off`},
		{"unstable number", "nested: {down-all-when-unstable: 7}", `f.yaml:1: nested.down-all-when-unstable: expected on, off or a duration such as 15s, found the number 7: a unit is missing, such as 7s`},
		{"unstable word", "nested: {down-all-when-unstable: no}", `f.yaml:1: nested.down-all-when-unstable: expected on, off or a duration such as 15s, found "no"`},
		{"threshold", "nested: {threshold: 1.5}", `f.yaml:1: nested.threshold: expected on, off or a number from 0 to 1, found "1.5"`},
		{"threshold nan", "nested: {threshold: nan}", `f.yaml:1: nested.threshold: expected on, off or a number from 0 to 1, found "nan"`},
		{"variant", "nodes: {a: b}", `f.yaml:1: nodes: expected a number or a list of names, found keys and values`},
		{"variant, wrong inside", "nodes: x", `f.yaml:1: nodes: expected a whole number, found "x"`},
		{"root is a list", "- a", `f.yaml:1: expected keys and values, found a list`},
		{"root is text", "hello", `f.yaml:1: expected keys and values, found "hello"`},
		{"empty", "", `f.yaml: the input is empty`},
		{"comments only", "# nothing\n", `f.yaml: the input is empty`},
		{"null", "null", `f.yaml: the input is empty`},
		{"document marker only", "---\n", `f.yaml: the input is empty`},
		{"second document", "system: a\n---\nsystem: b\n", `f.yaml:2: a second document starts here, exactly one is expected`},
		{"two JSON values", `{"system":"a"}{"system":"b"}`, `f.yaml: not YAML or JSON: did not find expected <document start>`},
		{"alias", "tags: &a {x: y}\nroles: *a", `f.yaml:2: aliases (*name) are not supported, write the value out`},
		{"merge key", "tags: &a {x: y}\nnested: {<<: {alone: on}}", `f.yaml:2: merge keys (<<) are not supported, write the keys out`},
		{"tag", "system: !!str 5", `f.yaml:1: tags (!name) are not supported`},
		{"list as a key", "? [a]\n: b", `f.yaml:1: a key must be a single word, found a list`},
		{"too deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), `f.yaml:1: nested too deeply`},
		{"control characters", "system: \x00", `f.yaml: not YAML or JSON: control characters are not allowed`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := decode(t, tc.in)
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestDecode_ReportsAllProblemsInOrder(t *testing.T) {
	_, err := decode(t, "size: a\nroles: b\nport: c\nx: 1\n")
	require.EqualError(t, err, `f.yaml:1: size: expected a whole number, found "a"
f.yaml:2: roles: expected a list, found "b"
f.yaml:3: port: expected a whole number of at least 0, found "c"
f.yaml:4: x: unknown key; the nearest known key is size`)

	_, err = decode(t, "tags: {"+strings.Repeat("a: b, ", 100)+"}")
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 21)
	require.Equal(t, "and 79 problems more", lines[20])
}

func TestDecode_BoundsItsInput(t *testing.T) {
	random := make([]byte, 10<<20)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(random)
	for name, junk := range map[string][]byte{
		"random":     random,
		"text":       bytes.Repeat([]byte("a"), 10<<20),
		"words":      bytes.Repeat([]byte("a b "), 10<<18),
		"brackets":   bytes.Repeat([]byte("["), 10<<20),
		"braces":     bytes.Repeat([]byte("{"), 10<<20),
		"dashes":     bytes.Repeat([]byte("- "), 5<<20),
		"questions":  bytes.Repeat([]byte("? "), 5<<20),
		"commas":     append([]byte("["), bytes.Repeat([]byte("a,"), 5<<20)...),
		"new lines":  bytes.Repeat([]byte("\n"), 10<<20),
		"comments":   bytes.Repeat([]byte("#"), 10<<20),
		"quotes":     bytes.Repeat([]byte(`"`), 10<<20),
		"anchors":    bytes.Repeat([]byte("&a "), 3<<20),
		"tabs":       bytes.Repeat([]byte("\t"), 10<<20),
		"large key":  append(bytes.Repeat([]byte("k"), 10<<20), ": 1"...),
		"large text": append([]byte("size: "), bytes.Repeat([]byte("k"), 10<<20)...),
		"documents":  bytes.Repeat([]byte("--- "), 10<<18),
	} {
		t.Run(name, func(t *testing.T) {
			var d document
			err := strictyaml.Decode(junk, &d, strictyaml.Options{MaxBytes: 16 << 20})
			require.Error(t, err)
			require.Less(t, len(err.Error()), 400)
			require.NotContains(t, err.Error(), "\n")
			require.EqualError(t, strictyaml.Decode(junk, &d, strictyaml.Options{MaxBytes: 1 << 20}),
				"the input is larger than 1048576 bytes")
		})
	}
}

func TestDecode_RecordsLines(t *testing.T) {
	lines := map[string]int{}
	var d document
	in := "system: a\nnested:\n  stable-after: 1s\nmembers:\n- alone: on\n"
	require.NoError(t, strictyaml.Decode([]byte(in), &d, strictyaml.Options{Lines: lines}))
	var ps strictyaml.Problems
	ps.Add("nested.stable-after", "too short")
	ps.Add("members[0].watch", "missing")
	ps.Add("nodes", "missing")
	require.EqualError(t, ps.Locate("f", lines).Err(),
		"f: nodes: missing\nf:3: nested.stable-after: too short\nf:5: members[0].watch: missing")
	require.NoError(t, strictyaml.Problems(nil).Err())
}

func TestOneOf(t *testing.T) {
	known := []string{"keep-majority", "down-all"}
	require.NoError(t, strictyaml.OneOf("down-all", known))
	require.EqualError(t, strictyaml.OneOf("keep-majorty", known),
		`"keep-majorty" is unknown; the nearest is keep-majority (known are keep-majority, down-all)`)
	require.EqualError(t, strictyaml.OneOf("TERM", []string{"SIGHUP", "SIGTERM"}),
		`"TERM" is unknown; the nearest is SIGTERM (known are SIGHUP, SIGTERM)`)
	require.EqualError(t, strictyaml.OneOf("x", known), `"x" is unknown; known are keep-majority, down-all`)
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"system: a", `{"size": 3}`, "a: *b", "<<: {}", "- - -", "nodes: [1,2]",
		"nested: {watch: on}", "? a\n: b", "%YAML 1.1\n---\na: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		err := strictyaml.Decode(data, &d, strictyaml.Options{Name: "f", MaxBytes: 1 << 16})
		if err == nil {
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, "f:") && !strings.HasSuffix(line, "problems more") {
				t.Errorf("a problem spans lines or has no place: %q", line)
			}
		}
	})
}
