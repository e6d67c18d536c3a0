package simulator_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a test that notes what it is told.
type recorder struct {
	name           string
	logged, failed string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Name() string                      { return r.name }
func (r *recorder) Logf(format string, args ...any)   { r.logged += fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.failed += fmt.Sprintf(format, args...) }

// play runs s in a test that is only recorded, whatever seeds the environment asks for.
func play(t *testing.T, s simulator.Source, opts ...simulator.Option) *recorder {
	t.Helper()
	return playSeeds(t, "", s, opts...)
}

// playSeeds is play with SBR_SEEDS.
func playSeeds(t *testing.T, env string, s simulator.Source, opts ...simulator.Option) *recorder {
	t.Helper()
	t.Setenv("SBR_SEEDS", env)
	t.Setenv("TMPDIR", t.TempDir())
	r := &recorder{name: t.Name()}
	simulator.Run(r, s, opts...)
	return r
}

// threeTwo resolves itself with every seed.
func threeTwo() *simulator.Scenario {
	return simulator.New("three against two").Set(
		"cluster: {split-brain-resolver: {lease-majority: {acquire-lease-delay-for-minority: 6s}}}").
		At(10*sec, simulator.Partition(simulator.Side("n1", "n2", "n3"), simulator.Side("n4", "n5")))
}

// unready breaks S1: no member is ready to decide for an hour. Only some steps have to do with it.
func unready() *simulator.Scenario {
	return simulator.New("unready").Set(
		"cluster: {nodes: 7, split-brain-resolver: {settle-after: 1h, stable-after: 7300ms}}").
		At(5*sec, simulator.ScrambleClocks(time.Hour, 0.1)).
		At(10*sec, simulator.Groups(3)).
		At(30*sec, simulator.Repeat(3, 20*sec, simulator.StoreFaults(10*sec)))
}

func TestRun_PassesQuietly(t *testing.T) {
	simulator.Run(t, threeTwo().Set("expect: {survivors: [n1, n2, n3], resolved-within: 60s}"))

	r := play(t, threeTwo())
	require.Empty(t, r.failed)
	require.Equal(t, "simulator: passed with seeds 1-100", r.logged)
}

// Each seed is played exactly once, each with the scenario that is built for it.
func TestRun_PlaysEverySeed(t *testing.T) {
	for env, want := range map[string][2]uint64{"": {5, 104}, "7": {7, 7}, "3-12": {3, 12}} {
		src := &counting{built: make(map[uint64]int)}
		require.Empty(t, playSeeds(t, env, src, simulator.Seeds(5, 104)).failed)
		require.Len(t, src.built, int(want[1]-want[0])+1)
		for seed := want[0]; seed <= want[1]; seed++ {
			require.Equal(t, 1, src.built[seed], "seed %d", seed)
		}
	}
}

type counting struct {
	sync.Mutex
	built map[uint64]int
}

func (c *counting) Build(seed uint64) (*scenario.Scenario, error) {
	c.Lock()
	defer c.Unlock()
	c.built[seed]++
	return simulator.New("x").Set("run-for: 1s").Build(seed)
}

func TestRun_RefusesSeedsThatAreNone(t *testing.T) {
	for env, want := range map[string]string{
		"x": `SBR_SEEDS is "x": it must be a seed such as 7, or a range such as 1-200`, "9-1": "SBR_SEEDS: seeds must go upwards: 1-9",
		"0-99999999": "SBR_SEEDS: at most 10000000 seeds", "1-": "SBR_SEEDS is", "-1": "SBR_SEEDS is",
	} {
		require.Contains(t, playSeeds(t, env, threeTwo()).failed, "simulator: "+want)
	}
	require.Contains(t, play(t, threeTwo(), simulator.Seeds(9, 1)).failed, "simulator: seeds must go upwards")
}

func TestRun_SaysWhatIsWrongBeforeItPlays(t *testing.T) {
	r := play(t, simulator.New("x").Set("cluster: {split-brain-resolver: {active-strategy: keep}}").At(sec,
		simulator.Crash("n9")))
	require.True(t, strings.HasPrefix(r.failed, "simulator: with seed 1: "), r.failed)
	require.Contains(t, r.failed, `active-strategy: "keep" is unknown`)
	require.Contains(t, r.failed, `no member is called "n9"`)
	require.Contains(t, play(t, simulator.File(filepath.Join(t.TempDir(), "none.yaml"))).failed, "none.yaml")
	require.Contains(t, play(t, simulator.Fixed(&scenario.Scenario{})).failed, "cluster.nodes: are 0")
	r = play(t, simulator.New("x").At(sec, func(*simulator.Plan) { panic("boom") }))
	require.Contains(t, r.failed, "with seed 1: planning it panicked: boom")
}

// Of several mistakes that of the lowest seed is reported, whichever was found first.
func TestRun_NamesTheLowestSeedThatCannotBeBuilt(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for range 20 {
		require.Contains(t, play(t, broken{make(chan struct{})}, simulator.Seeds(3, 900)).failed,
			"with seed 77: no scenario")
	}
}

// broken has no scenario from seed 77 on, and is done with seed 78 first.
type broken struct{ later chan struct{} }

func (b broken) Build(seed uint64) (*scenario.Scenario, error) {
	switch seed {
	case 77:
		<-b.later
		return nil, errors.New("no scenario")
	case 78:
		close(b.later)
		return nil, errors.New("no scenario")
	}
	return simulator.New("x").Set("run-for: 1s").Build(seed)
}

func TestRun_PlaysFiles(t *testing.T) {
	simulator.Run(t, simulator.File("scenarios/three-two.yaml"), simulator.Seeds(1, 10))
	s, err := threeTwo().Build(1)
	require.NoError(t, err)
	simulator.Run(t, simulator.Fixed(s), simulator.Seeds(1, 10))
}

// A failure says what, with which seed, in how small a scenario, and how to see it again.
func TestRun_SaysAllAboutAFailure(t *testing.T) {
	r := play(t, unready(), simulator.Seeds(4, 9))
	for _, want := range []string{
		`simulator: scenario "unready" fails with seed 4, and with 6 of 6 in all: 4 5 6 7 8 9` +
			"\n    S1 broken at ",
		"\n      (S1: two sides of one partition never both stay up)\n",
		"the smallest scenario found that fails in this way (1 step, 2 members instead of 11 steps, 7 members):\n    name: unready\n    cluster: {nodes: [{name: n",
		", split-brain-resolver: {settle-after: 1h}}\n    steps:\n      - {at: 10s, partition: [[n",
		"\nit fails with seed 4:\n    S1 broken at 190.000s: ",
		"\nreplay it:\n    sbr simulate ", " --seeds 4\n",
		"\nreplay this test:\n    SBR_SEEDS=4 go test -run '^TestRun_SaysAllAboutAFailure$' github.com/serf-sbr/serf-sbr/simulator\n",
	} {
		require.Contains(t, r.failed, want)
	}
	require.Contains(t, playSeeds(t, "8", unready()).failed, "fails with seed 8\n    S1 broken")
}

// The lowest seed that fails is reported, whatever core was first; the seeds that pass are not.
func TestRun_ReportsTheLowestSeed(t *testing.T) {
	odd := func(p *simulator.Plan) { p.Play(simulator.Maybe(0.2, simulator.Crash("n1"))) }
	s := simulator.New("sometimes").At(sec, odd).Set("expect: {survivor-count: 5}")
	first := play(t, s).failed
	require.Regexp(t, `fails with seed \d+, and with \d+ of 100 in all: (\d+ ){10}…`, first)
	lowest := regexp.MustCompile(`fails with seed (\d+), .* in all: (\d+) `).FindStringSubmatch(first)
	require.Equal(t, lowest[1], lowest[2])
	require.NotEqual(t, "1", lowest[1], "some seeds before it passed")
	strip := regexp.MustCompile(`sbr simulate \S+`)
	for range 5 {
		require.Equal(t, strip.ReplaceAllString(first, ""), strip.ReplaceAllString(play(t, s).failed, ""))
	}
}

// The search for a smaller scenario is bounded: with a single try the scenario stays as it is.
func TestRun_ShrinkTriesBoundTheSearch(t *testing.T) {
	require.Contains(t, play(t, unready(), simulator.Seeds(4, 9), simulator.ShrinkTries(1)).failed,
		"(11 steps, 7 members instead of 11 steps, 7 members)")
}

// The small scenario fails with the seed that failed, where others pass.
func TestRun_ShrinksWithTheSeedThatFailed(t *testing.T) {
	s := threeTwo().Set(`
cluster:
  split-brain-resolver: {lease-majority: {acquire-lease-delay-for-minority: 1s}}
  detection: {after: 4s, spread: 4s, heal: 1s}
expect: {survivors: [n1, n2, n3]}`).
		At(5*sec, simulator.ScrambleClocks(time.Hour, 0), simulator.StoreSlow(time.Millisecond, sec))
	failed := play(t, s).failed
	part := regexp.MustCompile(`fails with seed (\d+), and with \d+ of 100 in all: (\d+) (\d+)`).FindStringSubmatch(failed)
	require.NotNil(t, part, failed)
	var first, second int
	_, err := fmt.Sscan(part[1]+" "+part[3], &first, &second)
	require.NoError(t, err)
	require.Greater(t, second, first+1, "the next seed passes")
	require.Regexp(t, `\([1-3] steps?, 5 members instead of 7 steps, 5 members\)`, failed)
}

func TestRun_ReplayQuotesTheName(t *testing.T) {
	t.Run("it's a (sub) test", func(t *testing.T) {
		failed := play(t, unready(), simulator.Seeds(1, 1)).failed
		require.Contains(t, failed,
			`SBR_SEEDS=1 go test -run '^TestRun_ReplayQuotesTheName$/^it'\''s_a_\(sub\)_test$' github.com/`)
		require.Regexp(t, `sbr simulate '.*\(sub\).*/sbr-TestRun_ReplayQuotesTheName_it_s_a__sub__test-seed-1-\d+\.yaml' --seeds 1`, failed)
	})
}

// The scenario that is printed is that of the file, and it fails with exactly the failures that are printed.
func TestRun_ThePrintedScenarioFailsAsPrinted(t *testing.T) {
	for name, s := range map[string]*simulator.Scenario{
		"a promise":      unready(),
		"an expectation": threeTwo().At(20*sec, simulator.LoneNode()).Set("expect: {survivors: [n4, n5], resolved-within: 1s}"),
		"random":         simulator.New("random").Set("cluster: {nodes: 6}").At(5*sec, simulator.Swizzle(0, 20*sec), simulator.StoreFaults(time.Minute)).Set("expect: {survivor-count: 0}"),
	} {
		t.Run(name, func(t *testing.T) {
			failed := play(t, s, simulator.Seeds(1, 30)).failed
			part := regexp.MustCompile(`(?s)members\):\n(.*)it fails with seed (\d+):\n(.*)replay it:\n    sbr simulate (\S+) --seeds (\d+)\n`).FindStringSubmatch(failed)
			require.NotNil(t, part, failed)
			require.Equal(t, part[2], part[5])
			printed := strings.ReplaceAll(part[1], "\n    ", "\n")[4:]
			kept, err := os.ReadFile(part[4])
			require.NoError(t, err)
			first, rest, _ := strings.Cut(string(kept), "\n")
			require.Equal(t, printed, rest)

			again, err := scenario.Parse("printed.yaml", []byte(printed))
			require.NoError(t, err)
			var seed uint64
			_, err = fmt.Sscan(part[2], &seed)
			require.NoError(t, err)
			r := scenario.Judge(again, seed)
			require.False(t, r.Passed)
			said := regexp.MustCompile(`(?m)^      \(.*\)\n`).ReplaceAllString(part[3], "")
			require.Equal(t, "    "+strings.Join(r.Failures, "\n    ")+"\n", said)
			require.Equal(t, fmt.Sprintf("# Fails with seed %d: %s", seed, r.Failures[0]), first)
		})
	}
}

// TestRun_Child fails when TestRun_TheCommandsReplay asks for it.
func TestRun_Child(t *testing.T) {
	s := threeTwo()
	if os.Getenv("SBR_TEST_FAIL") != "" {
		s = unready()
	}
	t.Run("in a group", func(t *testing.T) { simulator.Run(t, s) })
}

// Both commands that a failure prints are run as they are: each shows what was printed.
func TestRun_TheCommandsReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: run without -short")
	}
	bin := t.TempDir()
	sh := func(command string, env ...string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-c", command)
		c.Env = append(append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+bin), env...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := sh("go build -o " + filepath.Join(bin, "sbr") + " ../cmd/sbr")
	require.NoError(t, err, out)

	out, err = sh("go test -run '^TestRun_Child$' .", "SBR_TEST_FAIL=1", "SBR_SEEDS=33-40")
	require.Error(t, err, "it fails")
	commands := regexp.MustCompile(`(?m)^ *(sbr simulate .* --seeds 33|SBR_SEEDS=33 go test -run .*)$`).FindAllStringSubmatch(out, -1)
	require.Len(t, commands, 2, out)
	small := regexp.MustCompile(`(?s)it fails with seed 33:\n(.*?)\n\s*replay it:`).FindStringSubmatch(out)
	require.NotNil(t, small, out)
	reason := regexp.MustCompile(`S1 broken at .*`).FindString(small[1])
	require.NotEmpty(t, reason)

	simulated, err := sh(commands[0][1])
	require.Error(t, err, "it fails again")
	require.Contains(t, simulated, reason)
	require.Contains(t, simulated, "seed 33")

	replayed, err := sh(commands[1][1], "SBR_TEST_FAIL=1")
	require.Error(t, err, "it fails again")
	require.Contains(t, replayed, `scenario "unready" fails with seed 33`+"\n")
	first := regexp.MustCompile(`(?s)in all: [^\n]*\n(.*?)the smallest`).FindStringSubmatch(out)
	require.NotNil(t, first, out)
	require.Contains(t, replayed, first[1], "the same failures of the whole scenario")
	require.Contains(t, replayed, small[1], "and of the small one")
}

// With -artifacts the scenario is one of the test's.
func TestRun_KeepsTheScenarioAmongTheArtifacts(t *testing.T) {
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRun_Child$", "-test.artifacts",
		"-test.outputdir", dir)
	c.Env = append(os.Environ(), "SBR_TEST_FAIL=1", "SBR_SEEDS=3")
	out, err := c.CombinedOutput()
	require.Error(t, err)
	path := regexp.MustCompile(`sbr simulate (\S+) --seeds 3`).FindStringSubmatch(string(out))
	require.NotNil(t, path, string(out))
	require.True(t, strings.HasPrefix(path[1], dir), path[1])
	require.FileExists(t, path[1])
}
