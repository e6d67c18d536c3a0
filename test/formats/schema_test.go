package formats

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jacoelho/xsd"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// library returns the scenario files, and one that has every action once.
func library(t *testing.T) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "simulator", "scenarios", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, filepath.Join("..", "..", "simulator", "scenario", "testdata",
		"contract.yaml")) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, data)
	}
	return all
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	return compiled(t, scenario.Schema())
}

func compiled(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json") // also checks it against the schema of draft 2020-12
	require.NoError(t, err)
	return s
}

// instance is a YAML document as an editor sees it.
func instance(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return instance(n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = instance(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			list[i] = instance(c)
		}
		return list
	}
	var v any
	if n.Tag == "!!timestamp" || n.Decode(&v) != nil {
		return n.Value
	}
	return v
}

// schemaError is what the schema says of a document that is YAML at all.
func schemaError(t testing.TB, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal(data, &doc))
	return s.Validate(instance(&doc))
}

// The schema of sbr.yaml accepts what is deployed and what sbr config init prints, and refuses what the
// program refuses.
func TestConfigSchema(t *testing.T) {
	s := compiled(t, config.Schema())
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "kubernetes", "*", "*", "sbr.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range append(files, filepath.Join("..", "..", "deploy", "package", "sbr.yaml")) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, schemaError(t, s, data), path)
	}
	template, err := config.Template(map[string]string{"system": "s", "split-brain-resolver.min-members": "3"})
	require.NoError(t, err)
	require.NoError(t, schemaError(t, s, template))
	for _, bad := range []string{
		"downing-provider: none", "system: s\nstable-after: 20s", "system: s\nsplit-brain-resolver: {stable-afer: 20s}",
		"system: s\nsplit-brain-resolver: {active-strategy: keep-olds}", "system: s\nhooks: {on-down: reboot}",
		"system: s\nlease: {heartbeat-timeout: 20}",
	} {
		require.Error(t, schemaError(t, s, []byte(bad)), bad)
		_, err := config.Parse("bad", []byte(bad))
		require.Error(t, err, bad)
	}
}

// What Parse refuses the schema refuses as well, wherever a schema can know.
func TestSchema_RefusesWhatParseRefuses(t *testing.T) {
	s := compiledSchema(t)
	step := func(s string) string { return "run-for: 60s\nsteps:\n  - {" + s + "}" }
	cluster := func(s string) string { return "run-for: 60s\ncluster: {" + s + "}" }
	rules := func(s string) string { return cluster("split-brain-resolver: {" + s + "}") }
	for _, junk := range []string{
		"[]", "text", "{}", "name: x", "run-for: 0s", "run-for: -1s", "run-for: 5", "run-for: 10", "run-for: NaN", "run-for: soon", "run-for:",
		"run-for: .inf", "run-fro: 60s", "run-for: 60s\nname: 5", "run-for: 60s\nseeds: 1-5", "run-for: 60s\nsteps: {}",
		cluster("nodes: 0"), cluster("nodes: -1"), cluster("nodes: 1000000"), cluster("nodes: 2.5"),
		cluster("nodes: five"), cluster("nodes: {a: 1}"), cluster("nodes: []"),
		cluster("nodes: [{roles: [web]}]"), cluster("nodes: [n1]"), cluster("nodes: [{name: none}]"),
		cluster("nodes: [{name: ''}]"), cluster("nodes: [{name: 'a b'}]"),
		cluster("nodes: [{name: a, zone: none}]"), cluster("nodes: [{name: a, weight: 3}]"), cluster("node: 5"),
		cluster("detection: serf-lam"), cluster("detection: {after: -4s}"), cluster("detection: {before: 4s}"),
		cluster("detection: 4s"),
		cluster("network: {loss: 1.5}"), cluster("network: {loss: .nan}"), cluster("network: {loss: -1}"),
		cluster("network: {loss: '0.5'}"), cluster("network: {latency: -1ms}"),
		cluster("lease: {heartbeat-timeout: 0s}"), cluster("lease: {heartbeat-timeout: 0}"),
		cluster("lease: {heartbeat-timeout: infinity}"), cluster("lease: {heartbeat-interval: infinite}"),
		cluster("lease: {kubernetes: {api: raft}}"), cluster("lease: {redis: {}}"),
		rules("active-strategy: keep-majorty"), rules("stable-aftr: 1s"), rules("stable-after: -1s"),
		rules("stable-after: 20"), rules("stable-after: infinite"),
		rules("down-all-when-unstable: 0s"), rules("down-all-when-unstable: maybe"),
		rules("down-all-when-indirectly-connected: 1.5"),
		rules("min-members: 0"), rules("probe: {tries: -1}"), rules("probe: {neighbours: many}"),
		rules("lease-majority: {watch: perhaps}"),
		rules("lease-majority: {when-lease-unknown: wait}"), rules("lease-majority: {suspend-timeout: 0s}"),
		rules("lease-majority: {lease-implementation: consul}"),
		step(""), step("at: 1s"), step("crash: n1"), step("at: -1s, crash: n1"), step("at: 1, crash: n1"),
		step("at: , crash: n1"), step("at: 1s, crash: n1, heal: true"),
		step("at: 1s, crash: [n1]"), step("at: 1s, crash: ''"), step("at: 1s, crash: none"),
		step("at: 1s, crush: n1"), step("at: 1s, crash: n1, for: 3s"),
		step("at: 1s, heal: false"), step("at: 1s, heal: n1"), step("at: 1s, partition: []"),
		step("at: 1s, partition: [n1, n2]"), step("at: 1s, partition: [[n1], []]"),
		step("at: 1s, partition: [[n1, n1]]"), step("at: 1s, cut: [n1]"), step("at: 1s, cut: [n1, n2, n3]"),
		step("at: 1s, cut-one-way: [n1, n1]"),
		step("at: 1s, pause: n1"), step("at: 1s, pause: n1, for: 0s"), step("at: 1s, pause: n1, for: -3s"),
		step("at: 1s, pause: n1, for: 3s, nodes: [n1]"),
		step("at: 1s, lease-store: dwn"), step("at: 1s, lease-store: {slow: 0s}"), step("at: 1s, lease-store: {}"),
		step("at: 1s, lease-store: {fast: 1s}"),
		step("at: 1s, lease-store: down, nodes: []"), step("at: 1s, crash: n1, nodes: [n1]"),
		step("at: 1s, lease-store: down, nodes: [n1, n1]"),
		step("at: 1s, clock: {node: n1}"), step("at: 1s, clock: {skew: 1s}"),
		step("at: 1s, clock: {node: n1, rate: 0}"), step("at: 1s, clock: {node: n1, rate: .nan}"),
		step("at: 1s, clock: {node: n1, rate: 1000}"), step("at: 1s, clock: {node: n1, skew: 5}"),
		"run-for: 60s\nexpect: {survivors: [n1, n1]}", "run-for: 60s\nexpect: {survivors-one-of: []}", "run-for: 60s\nexpect: {survivors: n1}",
		"run-for: 60s\nexpect: {survivor-count: -1}", "run-for: 60s\nexpect: {survivor-count: many}", "run-for: 60s\nexpect: {lease-holder: ''}",
		"run-for: 60s\nexpect: {resolved-within: -1s}", "run-for: 60s\nexpect: {decisions: {n1: down-all-of-it}}", "run-for: 60s\nexpect: {decisions: [n1]}",
		"run-for: 60s\nexpect: {survivor: [n1]}",
	} {
		_, err := scenario.Parse("x.yaml", []byte(junk))
		require.Error(t, err, junk)
		require.Error(t, schemaError(t, s, []byte(junk)), "%s\nParse: %v", junk, err)
	}
}

// What needs the rest of the file, or arithmetic, a schema cannot know: Parse refuses it, an editor does not.
func TestSchema_CannotKnow(t *testing.T) {
	s := compiledSchema(t)
	for why, junk := range map[string]string{
		"who is a member":                          "run-for: 60s\nsteps: [{at: 1s, crash: n9}]",
		"who is in two groups":                     "run-for: 60s\nsteps: [{at: 1s, partition: [[n1], [n1]]}]",
		"when the run ends":                        "run-for: 60s\nsteps: [{at: 61s, crash: n1}]",
		"that 1001h is too long":                   "run-for: 1001h",
		"who was there from the start":             "run-for: 60s\nsteps: [{at: 1s, join: n1}]",
		"which names are taken":                    "run-for: 60s\ncluster: {nodes: [{name: a}, {name: a}]}",
		"how many members there are":               "run-for: 60s\nexpect: {survivor-count: 7}",
		"that nothing was cut":                     "run-for: 60s\nexpect: {resolved-within: 1s}",
		"what the active strategy needs":           "run-for: 60s\ncluster: {split-brain-resolver: {active-strategy: static-quorum}}",
		"that settings contradict each other":      "run-for: 60s\ncluster: {lease: {heartbeat-timeout: 10s, heartbeat-interval: 9s}}",
		"that a billionth of a nanosecond is none": "run-for: 0.000000001ns",
	} {
		_, err := scenario.Parse("x.yaml", []byte(junk))
		require.Error(t, err, junk)
		require.NoError(t, schemaError(t, s, []byte(junk)), "a schema can know %s: move it to the other table", why)
	}
}

// Whatever Parse accepts the schema accepts: files of the library, also with parts of each other, and with values
// from everywhere.
func TestSchema_AcceptsWhatParseAccepts(t *testing.T) {
	s := compiledSchema(t)
	values := []string{"0", "0s", "-0s", "+3s", "1m30s", ".5s", "1.s", "infinite", "on", "off", "true", "'true'",
		"false", "5", "0.5", "'0.5'", "1e-1", "''", "none", "None",
		"n1", "n2", "zone", "null", "~", "[]", "[n1]", "[n1, n2]", "[[n1], [n2]]", "[[], [n1]]", "{}", "down", "conflict", "{slow: 3s}", "{node: n1, rate: 2}",
		"{after: 1s}", "serf-wan", "KEEP-oldest", "Down-All", "{n1: None}", "suspend", "2001-01-01", "native", "[{name: a}]", "[~]"}
	var pieces []*yaml.Node
	read := func(text []byte) *yaml.Node {
		var doc yaml.Node
		require.NoError(t, yaml.Unmarshal(text, &doc))
		return doc.Content[0]
	}
	for _, v := range values {
		pieces = append(pieces, read([]byte(v)))
	}
	var docs []*yaml.Node
	for _, data := range library(t) {
		require.NoError(t, schemaError(t, s, data), "%s", data)
		docs = append(docs, read(data))
	}
	for _, once := range []string{ // what was found
		"run-for: 60s\ncluster: {shards: [{type: orders, count: 3}]}\nexpect: {shards: {orders: }}",
		"run-for: 60s\ncluster: {lease: {heartbeat-timeout: infinite}}\nsteps: [{at: 1s, crash: n1}]",
		"run-for: 60s\ncluster: ~\nsteps: [{at: 1s, crash: ~, heal: on, partition: ~}]\nexpect: ~",
		"run-for: 60s\ncluster: {nodes: 2}\nsteps: [{at: 1s, clock: {node: n1, rate: 0.01}}, {at: 2s, clock: {node: n2, rate: 100}}]",
		"run-for: 1ns\ncluster: {detection: {after: 0s, spread: 0s, heal: 0s}, network: {latency: 0, jitter: 0, loss: 1}}\n" +
			"steps: [{at: 0, crash: n1}]",
	} {
		_, err := scenario.Parse("x.yaml", []byte(once))
		require.NoError(t, err, once)
		require.NoError(t, schemaError(t, s, []byte(once)), once)
	}
	accepted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		doc := clone(docs[rapid.IntRange(0, len(docs)-1).Draw(rt, "file")])
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			mutate(rt, doc, pieces, docs)
		}
		data, err := yaml.Marshal(doc)
		require.NoError(rt, err)
		if _, err := scenario.Parse("x.yaml", data); err != nil {
			refused++
			return
		}
		accepted++
		require.NoError(rt, schemaError(t, s, data), "%s", data)
	})
	require.Positive(t, accepted, "%d were refused", refused)
}

// mutate changes one value of a document: it becomes another one, vanishes, or is taken from another file at
// the same key.
func mutate(t *rapid.T, doc *yaml.Node, pieces, docs []*yaml.Node) {
	n := doc
	for depth := 0; ; depth++ {
		if len(n.Content) == 0 {
			return
		}
		i := rapid.IntRange(0, len(n.Content)-1).Draw(t, "child")
		if n.Kind == yaml.MappingNode {
			i |= 1 // a value
		}
		child := n.Content[i]
		if len(child.Content) > 0 && rapid.IntRange(0, 3).Draw(t, "deeper") > 0 {
			n = child
			continue
		}
		switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
		case what == 0 && n.Kind == yaml.MappingNode:
			n.Content = slices.Delete(n.Content, i-1, i+1)
		case what == 0:
			n.Content = slices.Delete(n.Content, i, i+1)
		case what == 1 && n.Kind == yaml.MappingNode:
			var same []*yaml.Node
			for _, d := range docs {
				same = append(same, below(d, n.Content[i-1].Value)...)
			}
			n.Content[i] = clone(rapid.SampledFrom(same).Draw(t, "same key"))
		default:
			n.Content[i] = clone(rapid.SampledFrom(pieces).Draw(t, "value"))
		}
		return
	}
}

// below returns the values of a key anywhere in a document.
func below(n *yaml.Node, key string) (values []*yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == key {
			values = append(values, c)
		}
		values = append(values, below(c, key)...)
	}
	return values
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return &c
}

// Durations: the pattern of the schema and Go's own reading agree, on text of the letters that durations are
// made of.
func TestSchema_DurationsAreGos(t *testing.T) {
	s := compiledSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+]?([0-9]{0,2}\.?[0-9]{0,2}(ns|us|µs|ms|s|m|h|d|S)){0,3}[0-9]?`).Draw(t,
			"text")
		doc := map[string]any{"run-for": "60s",
			"steps": []any{map[string]any{"at": "1s", "clock": map[string]any{"node": "n1", "skew": text}}}}
		_, err := scenario.Parse("x.yaml", fmt.Appendf(nil,
			"run-for: 60s\nsteps: [{at: 1s, clock: {node: n1, skew: %s}}]", strconv.Quote(text)))
		readable := err == nil || strings.Contains(err.Error(), "it must be at most") // which takes arithmetic
		require.Equal(t, readable, s.Validate(doc) == nil, "%q: %v", text, err)
	})
}

// junitSchema is what all CI servers take.
func junitSchema(t *testing.T) *xsd.Schema {
	t.Helper()
	schema, err := xsd.LoadFile(filepath.Join("testdata", "junit.xsd"))
	require.NoError(t, err)
	return schema
}

// The report of the whole library is valid, also with runs that fail, whatever they are called.
func TestJUnit_OfTheProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "sbr")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o",
		bin, "./cmd/sbr").CombinedOutput()
	require.NoError(t, err, string(out))
	hostile := t.TempDir()
	for i, name := range []string{"<&\"'>", "]]>", "<![CDATA[", "<!-- -->", "\u202e\u2028", "🙂👩‍👩‍👧", "&#0;"} {
		text := fmt.Sprintf("name: %q\nrun-for: 10s\nexpect: {survivors: []}\n", name)
		require.NoError(t, os.WriteFile(filepath.Join(hostile, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600))
	}
	seeds := "1-50"
	if testing.Short() {
		seeds = "1-5"
	}
	report, err := exec.CommandContext(t.Context(), bin, "simulate", "../../simulator/scenarios", hostile,
		"--seeds", seeds, "-o", "junit").Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode(), "%s", exit.Stderr)
	require.NoError(t, junitSchema(t).Validate(bytes.NewReader(report)))
	require.Contains(t, string(report), "&lt;![CDATA[")
}

// The schema has teeth: each of these is refused by a server, and by it.
func TestJUnit_RefusesWhatServersRefuse(t *testing.T) {
	schema := junitSchema(t)
	report := func(suite, testcase, inside string) io.Reader {
		return strings.NewReader(fmt.Sprintf("<testsuites><testsuite %s><testcase %s>%s</testcase></testsuite></testsuites>", suite, testcase, inside))
	}
	suite, testcase := `name="a" tests="1" failures="0" errors="0"`, `name="a" classname="b" time="0.001"`
	require.NoError(t, schema.Validate(report(suite, testcase, "")))
	require.NoError(t, schema.Validate(report(suite, testcase, `<failure message="m" type="t">text</failure>`)))
	for why, bad := range map[string]io.Reader{
		"a case has no file":        report(suite, testcase+` file="x.yaml"`, ""),
		"a suite counts":            report(`name="a" tests="1" failures="0"`, testcase, ""),
		"a count is a number":       report(`name="a" tests="one" failures="0" errors="0"`, testcase, ""),
		"a case has a name":         report(suite, `classname="b" time="0.001"`, ""),
		"a time has no unit":        report(suite, `name="a" classname="b" time="1s"`, ""),
		"a time has a point":        report(suite, `name="a" classname="b" time="0,001"`, ""),
		"one outcome":               report(suite, testcase, `<failure message="m" type="t">x</failure><failure message="m" type="t">y</failure>`),
		"a failure has a message":   report(suite, testcase, `<failure type="t">x</failure>`),
		"no elements of one's own":  report(suite, testcase, `<replay/>`),
		"a case is one case":        strings.NewReader(`<testsuites><testsuite ` + suite + `><testcase ` + testcase + `/><testcase ` + testcase + `/></testsuite></testsuites>`),
		"properties come first":     strings.NewReader(`<testsuites><testsuite ` + suite + `><testcase ` + testcase + `/><properties><property name="a" value="b"/></properties></testsuite></testsuites>`),
		"somebody else's root":      strings.NewReader(`<report/>`),
		"control characters are no": strings.NewReader("<testsuites><testsuite " + suite + "><testcase name=\"\x1b\" classname=\"b\" time=\"0.001\"/></testsuite></testsuites>"),
	} {
		require.Error(t, schema.Validate(bad), why)
	}
}
