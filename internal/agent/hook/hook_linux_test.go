package hook

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/proc"
)

var facts = Facts{
	System: "payments", Member: "n4", Incarnation: "n4#p0r6ue", Incident: "9db0", Trace: "f1c3", State: "down",
	Reason: "n1's side is the \"majority\"",
	At:     time.Date(2026, 11, 21, 17, 10, 33, 5e8, time.FixedZone("", 3600)), Token: 6,
	Survivors: []string{"n1#kq3v9x"}, Down: []string{"n4#p0r6ue"},
}

func TestFacts_EnvironmentAndInput(t *testing.T) {
	t.Setenv("SBR_REASON", "of another time")
	t.Setenv("OF_THE_AGENT", "kept")
	dir := t.TempDir()
	r, _ := start(t, hooks{OnDown: append(script(t, `cat >"$1/input"; env | grep -e ^SBR_ -e ^OF_ | LC_ALL=C sort >"$1/env"; echo "$@" >"$1/args"`), dir, "a b", "$HOME;")})
	r.Down(t.Context(), facts)
	require.Equal(t, `OF_THE_AGENT=kept
SBR_AT=2026-11-21T16:10:33.5Z
SBR_EVENT=down
SBR_INCARNATION=n4#p0r6ue
SBR_INCIDENT=9db0
SBR_MEMBER=n4
SBR_REASON=n1's side is the "majority"
SBR_STATE=down
SBR_SYSTEM=payments
SBR_TOKEN=6
SBR_TRACE=f1c3
`, appears(t, filepath.Join(dir, "env")))
	require.Equal(t, dir+" a b $HOME;\n", appears(t, filepath.Join(dir, "args")),
		"no shell looks at the arguments")
	require.JSONEq(t, `{"event": "down", "system": "payments", "member": "n4", "incarnation": "n4#p0r6ue", "incident": "9db0", "trace": "f1c3", "state": "down",
		"reason": "n1's side is the \"majority\"", "at": "2026-11-21T16:10:33.5Z", "token": 6,
		"unreachable": [], "survivors": ["n1#kq3v9x"], "down": ["n4#p0r6ue"]}`, appears(t, filepath.Join(dir, "input")))
	data, err := Facts{Reason: "a\nb"}.complete().input(suspend)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(data), "\n"), "one line")
	require.NotContains(t, string(data), "0001-01-01T00:00:00Z")
}

// Texts come from other members as well: none of them keeps on-down from running.
func TestFacts_NoTextKeepsTheCommandFromRunning(t *testing.T) {
	for name, reason := range map[string]string{
		"longer than the kernel takes": strings.Repeat("ä", 200_000),
		"zero byte":                    "a\x00b",
		"not UTF-8":                    "a\xffb",
		"line breaks":                  "a\nSBR_EVENT=resume\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			r, j := start(t, hooks{OnDown: script(t, `[ "$SBR_EVENT" = down ] && [ "$(env | grep -c ^SBR_)" = 10 ]`)})
			f := facts
			f.Reason = reason
			r.Down(t.Context(), f)
			require.EqualValues(t, 0, j.one(t, "sbr: hook ended")["exit-status"])
		})
	}
}

// Whatever a command does, Down is over within its limit, and the log says what happened.
func TestRun_EveryEnd(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		timeout      time.Duration
		status       any
		problem      string
	}{
		{"success", `exit 0`, 0, 0., ""},
		{"exit status", `exit 3`, 0, 3., "exit status 3"},
		{"killed by somebody", `kill -9 $$`, 0, nil, "signal: killed"},
		{"hangs", `exec sleep 1000`, 100 * time.Millisecond, nil, "it was ended: it ran longer than hooks.timeout"},
		{"hangs, and its child too", `sleep 1000; exit 0`, 100 * time.Millisecond, nil, "it was ended: it ran longer than hooks.timeout"},
		{"does not listen", `trap '' TERM; while :; do sleep 0.01; done`, 100 * time.Millisecond, nil, "it was ended: it ran longer"},
		{"does not read its input", `exec <&-; exit 0`, 0, 0., ""},
		{"closes its output", `exec >&- 2>&-; exit 0`, 0, 0., ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			timeout := max(tc.timeout, time.Millisecond)
			if tc.timeout == 0 {
				timeout = waitMost
			}
			r, j := start(t, hooks{OnDown: script(t, tc.script), Timeout: timeout})
			f := facts
			f.Reason = strings.Repeat("x", 300_000) // more than a pipe holds
			within(t, waitMost, func() { r.Down(t.Context(), f) })
			message := "sbr: hook ended"
			if tc.problem != "" {
				message = "sbr: hook failed"
			}
			line := j.one(t, message)
			require.Equal(t, tc.status, line["exit-status"])
			require.Contains(t, line, "duration")
			if tc.problem != "" {
				require.Contains(t, line["problem"], tc.problem)
			}
			for key, want := range map[string]string{"member": f.Member, "incarnation": f.Incarnation,
				"incident": f.Incident, "trace": f.Trace} {
				require.Equal(t, want, line[key])
			}
		})
	}
}

// A command that ends in order when it is told to says how.
func TestRun_EndsInOrder(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	r, j := start(t, hooks{OnSuspend: append(script(t, `trap 'exit 7' TERM; echo begun >"$1"; while :; do sleep 0.01; done`), begun)})
	r.Suspended(facts)
	appears(t, begun)
	r.Close()
	require.EqualValues(t, 7, j.one(t, "sbr: hook failed")["exit-status"])
	require.Equal(t, "it was ended: the agent ends", j.one(t, "sbr: hook failed")["problem"])
}

// What was there at the start may be gone later.
func TestRun_TheFileChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(path string) error
		says   string
	}{
		"gone":             {os.Remove, "no such file"},
		"not executable":   {func(path string) error { return os.Chmod(path, 0o600) }, "permission denied"},
		"not a program":    {func(path string) error { return os.WriteFile(path, []byte("\x00\x01"), 0o700) }, "exec format error"},
		"no such shell":    {func(path string) error { return os.WriteFile(path, []byte("#!/absent\n"), 0o700) }, "no such file"},
		"is a folder now":  {func(path string) error { return cmp.Or(os.Remove(path), os.Mkdir(path, 0o700)) }, "permission denied"},
		"points to itself": {func(path string) error { return cmp.Or(os.Remove(path), os.Symlink(path, path)) }, "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			command := script(t, "exit 0")
			r, j := start(t, hooks{OnSuspend: command, OnDown: command})
			require.NoError(t, tc.change(command[0]))
			r.Down(t.Context(), facts)
			require.Contains(t, j.one(t, "sbr: hook failed")["problem"], tc.says)
		})
	}
}

// A command that hangs is ended with its children, also with one that does not listen to SIGTERM and holds no
// output. Down ends with its context.
func TestRun_ChildrenAreEnded(t *testing.T) {
	dir := t.TempDir()
	r, j := start(t, hooks{OnDown: append(script(t, `
		sh -c 'trap "" TERM; echo $$ >"$0/pid"; while :; do sleep 0.01; done' "$1" >/dev/null 2>&1 &
		exec sleep 1000`), dir)})
	ctx, cancel := contextThatEnds(t, func() { appears(t, filepath.Join(dir, "pid")) })
	defer cancel()
	within(t, waitMost, func() { r.Down(ctx, facts) })
	require.Contains(t, j.one(t, "sbr: hook failed")["problem"], "context canceled")
	pid, err := strconv.Atoi(strings.TrimSpace(appears(t, filepath.Join(dir, "pid"))))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !proc.Running(pid) }, waitMost, 10*time.Millisecond)
}

// A child that is cleaning up after SIGTERM gets its second, though the command itself is gone at once.
func TestRun_ChildrenHaveASecond(t *testing.T) {
	dir := t.TempDir()
	r, _ := start(t, hooks{OnDown: append(script(t, `
		(trap 'sleep 0.3; echo done >"$1/cleaned"; exit' TERM; echo ready >"$1/ready"; while :; do sleep 0.01; done) >/dev/null 2>&1 &
		exec sleep 1000`), dir)})
	ctx, cancel := contextThatEnds(t, func() { appears(t, filepath.Join(dir, "ready")) })
	defer cancel()
	r.Down(ctx, facts)
	r.Close()
	appears(t, filepath.Join(dir, "cleaned"))
}

// A command that leaves a process behind, with its output open, is done when it ends itself; what it left
// lives on.
func TestRun_LeavesAProcessBehind(t *testing.T) {
	dir := t.TempDir()
	r, j := start(t, hooks{OnDown: append(script(t, `sleep 1000 & echo $! >"$1/pid"; exit 0`), dir)})
	within(t, waitMost, func() { r.Down(t.Context(), facts) })
	pid, err := strconv.Atoi(strings.TrimSpace(appears(t, filepath.Join(dir, "pid"))))
	require.NoError(t, err)
	require.True(t, proc.Running(pid))
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.EqualValues(t, 0, j.one(t, "sbr: hook ended")["exit-status"])
	j.one(t, "sbr: hook ended, but a process that it started keeps its output open: no more of it is read")
}

// A gigabyte of output neither stops the command nor stays in memory.
func TestRun_OutputIsBounded(t *testing.T) {
	size := 1 << 30
	if testing.Short() {
		size = 64 << 20
	}
	for name, command := range map[string]string{
		"one line":   fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size),
		"many lines": fmt.Sprintf("yes line | head -c %d >&2", size),
	} {
		t.Run(name, func(t *testing.T) {
			r, j := start(t, hooks{OnDown: script(t, command), Timeout: 5 * waitMost})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.Down(t.Context(), facts)
			runtime.ReadMemStats(&after)
			require.EqualValues(t, 0, j.one(t, "sbr: hook ended")["exit-status"])
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
			printed := j.lines(t, "sbr: hook printed")
			require.NotEmpty(t, printed)
			logged := 0
			for _, line := range printed {
				logged += len(line["line"].(string))
			}
			require.LessOrEqual(t, logged, maxOutput)
			dropped := j.one(t, "sbr: hook printed more than is logged")["dropped-bytes"].(float64)
			require.EqualValues(t, size-maxOutput, dropped)
		})
	}
}

func TestRun_OutputLineByLine(t *testing.T) {
	r, j := start(t, hooks{OnDown: script(t, `printf 'a\r\n\n'; printf 'b\377c' ; printf 'oops\nafter\n' >&2`)})
	r.Down(t.Context(), facts)
	var got []string
	for _, line := range j.lines(t, "sbr: hook printed") {
		got = append(got, line["output"].(string)+" "+line["line"].(string))
	}
	require.ElementsMatch(t, []string{"stdout a", "stdout b\uFFFDc", "stderr oops", "stderr after"}, got)
}

// Behind a slow command only the newest change is kept; changes run one at a time.
func TestChanges_OneAtATimeAndTheNewestWins(t *testing.T) {
	dir := t.TempDir()
	log, gate := filepath.Join(dir, "log"), filepath.Join(dir, "gate")
	for _, token := range "145" {
		require.NoError(t, syscall.Mkfifo(gate+string(token), 0o600))
	}
	command := append(script(t, `echo "$SBR_EVENT $SBR_TOKEN begins" >>"$1"; read -r _ <"$2$SBR_TOKEN"; echo "$SBR_EVENT $SBR_TOKEN ends" >>"$1"`), log, gate)
	r, j := start(t, hooks{OnSuspend: command, OnResume: command})
	at := func(token uint64) Facts { f := facts; f.Token = token; return f }
	// waits until the command reads
	open := func(token string) { require.NoError(t, os.WriteFile(gate+token, []byte("go\n"), 0)) }
	r.Suspended(at(1))
	require.Equal(t, "suspend 1 begins\n", appears(t, log))
	r.Resumed(at(2))
	r.Suspended(at(3))
	r.Resumed(at(4))
	open("1")
	open("4")
	require.Eventually(t, func() bool { return strings.Count(appears(t, log), "ends") == 2 }, waitMost,
		time.Millisecond)
	require.Equal(t, "suspend 1 begins\nsuspend 1 ends\nresume 4 begins\nresume 4 ends\n", appears(t, log))
	require.EqualValues(t, 2,
		j.one(t, "sbr: hooks are left out for changes that were over before they could run")["changes"])
	r.Suspended(at(5))
	open("5")
	require.Eventually(t, func() bool { return strings.HasSuffix(appears(t, log), "suspend 5 ends\n") },
		waitMost, time.Millisecond)
}

// A resume without a command still takes back the suspend that waits.
func TestChanges_AnEventWithoutACommandCountsToo(t *testing.T) {
	dir := t.TempDir()
	log, gate := filepath.Join(dir, "log"), filepath.Join(dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	r, j := start(t, hooks{OnSuspend: append(script(t, `echo "$SBR_TOKEN" >>"$1"; read -r _ <"$2"`), log, gate)})
	r.Suspended(Facts{Token: 1})
	appears(t, log)
	r.Suspended(Facts{Token: 2})
	r.Resumed(Facts{Token: 3})
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0))
	j.one(t, "sbr: hooks are left out for changes that were over before they could run")
	r.Close()
	require.Equal(t, "1\n", appears(t, log))
}

// A change that hangs holds up the next one for its limit, not longer.
func TestChanges_HaveALimit(t *testing.T) {
	r, j := start(t, hooks{Timeout: 100 * time.Millisecond, OnSuspend: script(t, `exec sleep 1000`),
		OnResume: script(t, `exec sleep 1000`)})
	r.Suspended(facts)
	j.one(t, "sbr: hook starts")
	r.Resumed(facts)
	require.Eventually(t, func() bool { return len(j.lines(t, "sbr: hook failed")) == 2 }, waitMost,
		time.Millisecond)
	for i, name := range []string{"on-suspend", "on-resume"} {
		line := j.lines(t, "sbr: hook failed")[i]
		require.Equal(t, name, line["hook"])
		require.Equal(t, "it was ended: it ran longer than hooks.timeout", line["problem"])
	}
}

// on-down waits for nobody, and nothing runs after it.
func TestDown_EndsWhatRunsBefore(t *testing.T) {
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	hang := append(script(t, `trap '' TERM; echo begun >>"$1"; while :; do sleep 0.01; done`), begun)
	r, j := start(t, hooks{OnSuspend: hang, OnResume: hang, OnDown: script(t, `exit 0`)})
	r.Suspended(facts)
	appears(t, begun)
	r.Resumed(facts) // waits, and never runs
	r.Down(t.Context(), facts)
	require.Equal(t, "on-down", j.lines(t, "sbr: hook ended")[0]["hook"])
	require.Empty(t, j.lines(t, "sbr: hook failed"), "on-down did not wait for the end of on-suspend")
	r.Suspended(facts)
	r.Down(t.Context(), facts)
	failed := j.one(t, "sbr: hook failed")
	require.Equal(t, "on-suspend", failed["hook"])
	require.Equal(t, "it was ended: this member is down, which counts more", failed["problem"])
	r.Close()
	require.Equal(t, "begun\n", appears(t, begun))
	require.Len(t, j.lines(t, "sbr: hook starts"), 2)
}

// A reader of the log that stands still holds up no one.
func TestDown_LogStandsStill(t *testing.T) {
	release := make(chan struct{})
	o := hooks{Timeout: 100 * time.Millisecond, OnSuspend: script(t, `exit 0`), OnDown: script(t, `exit 0`),
		PIDFile: "/absent", Signal: "SIGTERM"}
	r, err := New(&o, stuck(release))
	require.NoError(t, err)
	within(t, waitMost, func() {
		r.Suspended(facts)
		r.Resumed(facts)
		r.Down(t.Context(), facts)
		r.Close()
	})
	close(release)
	r.Close()
}

func TestNew_ReportsEveryProblem(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	t.Setenv("PATH", dir)
	o := hooks{OnSuspend: []string{"no-such-program"}, OnResume: []string{plain}, OnDown: []string{dir},
		PIDFile: "p"}
	_, err := New(&o, slog.Default())
	require.EqualError(t, err,
		`hooks.on-suspend: "no-such-program" is not in $PATH: give the whole path of an executable file
hooks.on-resume: "`+plain+`" cannot be executed: it must be a file, with the right to execute it (chmod +x)
hooks.on-down: "`+dir+`" cannot be executed: is a directory`)
	o = hooks{OnSuspend: []string{"/absent/program"}, Timeout: 1}
	_, err = New(&o, slog.Default())
	require.EqualError(t, err, `hooks.on-suspend: "/absent/program" does not exist`)
}

// Whatever sbr.yaml may hold can be sent here.
func TestSignals_AreKnownHere(t *testing.T) {
	for _, name := range config.Signals() {
		sig, err := signalNamed(name)
		require.NoError(t, err)
		require.NotZero(t, sig, name)
	}
}

// Runs leave no file open.
func TestRun_NoFileStaysOpen(t *testing.T) {
	app := exec.Command("sleep", "1000")
	require.NoError(t, app.Start())
	defer app.Wait()
	defer app.Process.Kill()
	file := filepath.Join(t.TempDir(), "pid")
	require.NoError(t, os.WriteFile(file, []byte(strconv.Itoa(app.Process.Pid)), 0o600))
	run := func() {
		r, j := start(t, hooks{Timeout: 20 * time.Millisecond, OnDown: script(t, `sleep 1000`), PIDFile: file,
			Signal: "SIGCONT"})
		r.Down(t.Context(), facts)
		r.Close()
		j.one(t, "sbr: signal sent")
	}
	run()
	before := openFiles(t)
	for range 5 {
		run()
	}
	require.LessOrEqual(t, openFiles(t), before)
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
