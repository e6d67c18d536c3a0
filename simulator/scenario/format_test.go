package scenario

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// sameAgain formats, parses and compares. It returns the text.
func sameAgain(t require.TestingT, s *Scenario) string {
	text := Format(s)
	again, err := Parse("again.yaml", text)
	require.NoError(t, err, "%s", text)
	require.Equal(t, normal(s), normal(again), "%s", text)
	require.Equal(t, string(text), string(Format(again)))
	return string(text)
}

// normal is a copy in which nil and empty lists look alike where they mean the same.
func normal(s *Scenario) *Scenario {
	c := *s
	if len(c.Expect.Decisions) == 0 {
		c.Expect.Decisions = nil
	}
	if len(c.Cluster.Settings) == 0 {
		c.Cluster.Settings = nil
	}
	if c.Cluster.Nodes.List != nil {
		c.Cluster.Nodes.List = append([]Node{}, c.Cluster.Nodes.List...)
		for i := range c.Cluster.Nodes.List {
			if n := &c.Cluster.Nodes.List[i]; len(n.Roles) == 0 {
				n.Roles = nil
			}
		}
	}
	if one := c.Expect.SurvivorsOneOf; one != nil {
		sets := make([][]string, len(*one))
		for i, set := range *one {
			sets[i] = append([]string{}, set...)
		}
		c.Expect.SurvivorsOneOf = &sets
	}
	return &c
}

func TestFormat_ReadsAsPeopleWriteIt(t *testing.T) {
	s, err := Parse("x.yaml", []byte(contract))
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(`
name: three-two split
cluster:
  system: payments
  nodes: 5
  split-brain-resolver: {stable-after: 15s}
  lease: {heartbeat-timeout: 120s}
  detection: {after: 4s, spread: 1s, heal: 1s}
  settings: {n4: {stable-after: 30s}}
steps:
  - {at: 10s, partition: [[n1, n2, n3], [n4, n5]]}
  - {at: 10s, cut: [n1, n2]}
  - {at: 10s, cut-one-way: [n1, n2]}
  - {at: 12s, crash: n3}
  - {at: 13s, restart: n3}
  - {at: 14s, leave: n3}
  - {at: 14s, down: n4, by: n1}
  - {at: 10s..20s, lease-store: conflict, for: 1s..2s}
  - {at: 12s, join: n6}
  - {at: 12s, pause: n3, for: 30s}
  - {at: 12s, lease-store: down, nodes: [n4, n5], for: 5s}
  - {at: 12s, lease-store: {slow: 800ms}}
  - {at: 12s, clock: {node: n1, skew: 300s, rate: 1.001}}
  - {at: 90s, heal: true}
run-for: 180s
expect:
  survivors: [n1, n2, n3]
  survivors-one-of: [[n1], []]
  survivor-count: 3
  down: [n4, n5]
  lease-holder: n1
  resolved-within: 30s
  decisions: {n1: acquire-lease-and-down-unreachable}
`), strings.TrimSpace(string(Format(s))))
}

func TestFormat_LeavesOutDefaults(t *testing.T) {
	s := Default()
	s.Name, s.RunFor = "x", time.Minute
	require.Equal(t, "name: x\ncluster: {nodes: 5}\nrun-for: 60s\n", string(Format(&s)))
}

// Text that looks like something else stays text, and nothing in it breaks out of its line.
func TestFormat_TextStaysText(t *testing.T) {
	for _, text := range []string{
		"5", "0x10", "1e3", "null", "~", "on", "true", "2001-01-01", "<<", "=", "- a", "a: b", "{a}", "[a]", "# a", "a #b", "'", `"`, "\\", "!a", "&a", "*a", "%a", "@a", "`a",
		" a ", "a\nb", "a\n", "\n a", "\t", "\x00", "\u0085", "\u2028", "\ufeff", "ä", "🙂", strings.Repeat("long ", 100), ", ]", ": ", "?", "-", "---", "...",
	} {
		s := Default()
		s.Name, s.RunFor = text, time.Minute
		s.Cluster.Nodes = Nodes{List: []Node{{Name: "a", Roles: []string{text}}}}
		s.Cluster.SplitBrainResolver.KeepReferee.Address = text
		sameAgain(t, &s)
	}
	s := Default()
	s.Name, s.RunFor = "a\xffb", time.Minute
	again, err := Parse("x.yaml", Format(&s))
	require.NoError(t, err)
	require.Equal(t, "a\uFFFDb", again.Name, "what is no text cannot be in a file")
}

func TestFormat_DurationsReadBackToTheNanosecond(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 1500: "1.5µs", 800 * time.Millisecond: "800ms", time.Second: "1s",
		90500 * time.Millisecond: "90.5s",
		100 * time.Second:        "100s", 600 * time.Second: "600s", 20 * time.Minute: "20m", 5 * time.Hour: "5h",
		-5 * time.Hour:    "-5h",
		-90 * time.Second: "-90s", 1001 * time.Second: "16m41s", time.Second + 1: "1.000000001s",
	} {
		require.Equal(t, want, formatDuration(d))
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "d"))
		back, err := strictyaml.ParseDuration(formatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, back)
	})
	require.NotEmpty(t, formatDuration(math.MinInt64))
}

func TestFormat_LibraryReadsBackToTheSameRun(t *testing.T) {
	const quick = 20 // members; larger ones are only read back
	for name, s := range library(t) {
		text := sameAgain(t, s)
		if s.Names().Start > quick {
			continue
		}
		again := parse(t, text)
		require.Equal(t, Judge(s, 1).TraceHash, Judge(again, 1).TraceHash, name)
	}
}

// Whatever Validate accepts is read back, setting by setting. What steps say, and expectations, chance says in TestRandom_SaysEverythingInAFile.
func TestFormat_AnySettingReadsBack(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.Name, s.RunFor = "x", time.Minute
		s.Cluster.Detection.Profile = rapid.SampledFrom([]string{"", "serf-wan"}).Draw(t, "profile")
		if s.Cluster.Detection.Profile == "" {
			drawInto(t, "", reflect.ValueOf(&s.Cluster.Detection.Times).Elem())
		}
		drawInto(t, "", reflect.ValueOf(&s.Cluster.SplitBrainResolver).Elem())
		drawInto(t, "", reflect.ValueOf(&s.Cluster.Lease).Elem())
		drawInto(t, "", reflect.ValueOf(&s.Cluster.Network).Elem())
		s.Cluster.SplitBrainResolver.LeaseMajority.LeaseImplementation = config.ImplementationFile
		if s.Validate() != nil {
			require.NotEmpty(t, Format(&s), "also what does not validate is written")
			s.Cluster.SplitBrainResolver, s.Cluster.Lease = config.DefaultSplitBrainResolver(), config.Lease{}
		}
		if own := s.Cluster.SplitBrainResolver; rapid.Bool().Draw(t, "settings") {
			own.StableAfter += strictyaml.AutoDuration(time.Second)
			s.Cluster.Settings = map[string]*config.SplitBrainResolver{"n2": &own}
		}
		if s.Validate() == nil {
			valid++
			sameAgain(t, &s)
		}
	})
	require.Positive(t, valid, "the generator must hit what validates")
}

// drawInto fills a block of settings: about half of its fields, most of them with what may validate.
func drawInto(t *rapid.T, path string, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), path+"."+v.Type().Field(i).Name
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[strictyaml.OnOffDuration]() {
			drawInto(t, name, f)
		} else if v.Type().Field(i).Tag.Get("yaml") != "-" && rapid.IntRange(0, 3).Draw(t, name+"?") == 0 {
			drawField(t, name, f)
		}
	}
}

func drawField(t *rapid.T, name string, f reflect.Value) {
	span := rapid.Map(rapid.Int64Range(1, int64(2*time.Minute)),
		func(n int64) time.Duration { return time.Duration(n) })
	switch f.Interface().(type) {
	case strictyaml.OnOffDuration:
		f.Set(reflect.ValueOf(rapid.SampledFrom([]strictyaml.OnOffDuration{{}, {On: true}, {For: 1}, {For: time.Hour}}).Draw(t, name)))
		return
	case strictyaml.AutoDuration:
		d := rapid.OneOf(span, rapid.Just(time.Duration(strictyaml.Auto))).Draw(t, name)
		f.Set(reflect.ValueOf(strictyaml.AutoDuration(d)))
		return
	case *strictyaml.Span:
		s := strictyaml.Span(rapid.OneOf(span, rapid.Just(time.Duration(strictyaml.Infinite))).Draw(t, name))
		f.Set(reflect.ValueOf(&s))
		return
	case *time.Duration:
		d := span.Draw(t, name)
		f.Set(reflect.ValueOf(&d))
		return
	case time.Duration:
		f.Set(reflect.ValueOf(span.Draw(t, name)))
		return
	}
	switch {
	case f.Kind() == reflect.Slice:
		f.Set(reflect.ValueOf(rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, name)))
	case f.Kind() == reflect.Bool:
		f.SetBool(rapid.Bool().Draw(t, name))
	case f.CanInt():
		f.SetInt(rapid.Int64Range(0, 9).Draw(t, name))
	case f.CanFloat():
		f.SetFloat(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1})).Draw(t, name))
	case f.Kind() == reflect.String && name == ".ActiveStrategy":
		f.SetString(rapid.SampledFrom([]string{"keep-majority", "Keep-Oldest", "down-all"}).Draw(t, name))
	case f.Kind() == reflect.String && name == ".LeaseMajority.WhenLeaseUnknown":
		f.SetString("suspend")
	case f.Kind() == reflect.String && name == ".Kubernetes.API":
		f.SetString("akka")
	case f.Kind() == reflect.String:
		f.SetString(rapid.String().Draw(t, name))
	default:
		panic("a new kind of setting: " + name)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte(contract))
	files, err := filepath.Glob(filepath.Join("..", "scenarios", "*.yaml"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := Parse("x.yaml", data); err == nil && len(data) < 4096 {
			if len(s.Steps) == 0 {
				s.Steps = nil
			}
			sameAgain(t, s)
		}
	})
}
