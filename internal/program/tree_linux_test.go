package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/proc"
	"github.com/serf-sbr/serf-sbr/internal/program"
)

// stubborn is a tree that ignores SIGTERM: the program, a child, one in a session of its own, and a daemon
// whose parents have ended: each a shell that waits for a sleep. The numbers of the four shells and of the
// four sleeps are reported.
const stubborn = `
trap "" TERM HUP INT
echo $$ >> $PIDS
hang='echo $$ >> $PIDS; sleep 300 & echo $! >> $PIDS; wait'
sh -c "$hang" &
setsid sh -c "$hang" &
(setsid sh -c "sh -c '$hang' &" &)
sleep 300 & echo $! >> $PIDS
wait`

const stubbornProcesses = 8

// parentOptions are those of stubborn, for a process of their own.
func startParent(t *testing.T, o program.Options, left time.Duration) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+string(text))
	if left != 0 {
		cmd.Env = append(cmd.Env, "PROGRAM_TEST_LEFT="+left.String())
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func gone(t *testing.T, pids []int, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !proc.Running(pid) }, within, time.Millisecond,
			"process %d still runs", pid)
	}
	return time.Since(began)
}

// Nothing survives, however it is ended: not who ignores SIGTERM, nor who has left the group, the session and
// its parents. A bystander in the process group of the parent is nobody's program.
func TestTree_IsEndedWhole(t *testing.T) {
	other := exec.Command("/bin/sleep", "300")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	stop := func(_ *testing.T, p *program.Program) { p.Stop("the test says so", syscall.SIGTERM) }
	kill := func(_ *testing.T, p *program.Program) { p.Kill("the lease is lost") }
	killed := func(why string) program.Status { return program.Status{Signal: int(syscall.SIGKILL), Because: why} }
	for name, tc := range map[string]struct {
		script      string
		stopTimeout time.Duration
		do          func(t *testing.T, p *program.Program)
		least, most time.Duration
		want        program.Status
	}{
		"stopped": {stubborn, 500 * time.Millisecond, stop, 500 * time.Millisecond, 5500 * time.Millisecond, killed("the test says so")},
		"killed":  {stubborn, 10 * time.Second, kill, 0, 5 * time.Second, killed("the lease is lost")},
		"it ends by itself, and takes along what it has left": {
			stubborn[:len(stubborn)-len("wait")] + "exit 5", 300 * time.Millisecond,
			func(*testing.T, *program.Program) {}, 0, time.Minute,
			program.Status{Code: 5},
		},
		"its supervisor is killed, and the parent ends it": {stubborn, 10 * time.Second, func(t *testing.T, p *program.Program) {
			require.NoError(t, syscall.Kill(parentOf(p.Pid()), syscall.SIGKILL))
		}, 0, time.Minute, killed("its supervisor was killed")},
		"killed, while its supervisor stands still": {stubborn, 10 * time.Second, func(t *testing.T, p *program.Program) {
			freeze(t, parentOf(p.Pid()))
			kill(t, p)
		}, 0, 5 * time.Second, killed("its supervisor was killed")},
	} {
		t.Run(name, func(t *testing.T) {
			o, file := options(t, tc.script)
			o.StopTimeout = tc.stopTimeout
			p := begin(t, o)
			pids := started(t, file, stubbornProcesses)
			tc.do(t, p)
			took := ended(t, p, pids)
			t.Logf("%d processes ended after %v", len(pids), took)
			require.GreaterOrEqual(t, took, tc.least, "they were given their time")
			require.Less(t, took, tc.most)
			require.Equal(t, tc.want, p.Status())
			require.True(t, proc.Running(other.Process.Pid))
		})
	}
}

// A process that obeys the signal is not killed, even if it has left the group.
func TestStop_WhoObeysIsNotKilled(t *testing.T) {
	o, file := options(t, `
obey='trap "echo in peace >> $PIDS.end; exit 3" TERM; echo $$ >> $PIDS; while :; do sleep 0.01; done'
setsid sh -c "$obey" &
eval "$obey"`)
	o.StopTimeout = 20 * time.Second
	p := begin(t, o)
	pids := started(t, file, 2)
	p.Stop("the test says so", syscall.SIGTERM)
	require.Less(t, ended(t, p, pids), o.StopTimeout/2)
	require.Equal(t, "in peace\nin peace\n", read(t, file+".end"))
	require.Equal(t, 3, p.Status().ExitCode())
}

// A parent that is killed takes everything along.
func TestParent_Killed(t *testing.T) {
	o, file := options(t, stubborn)
	o.StopTimeout = 300 * time.Millisecond
	parent := startParent(t, o, 0)
	pids := started(t, file, stubbornProcesses)
	pids = append(pids, parentOf(pids[0]))
	require.NoError(t, parent.Process.Kill())
	t.Logf("%d processes, the supervisor included, ended %v after sbr run was killed", len(pids),
		gone(t, pids, 10*time.Second))
}

// The program does not outlive its time although its parent is paused.
func TestParent_Stopped(t *testing.T) {
	o, file := options(t, stubborn)
	const left = 2 * time.Second
	began := time.Now()
	parent := startParent(t, o, left)
	pids := started(t, file, stubbornProcesses)
	freeze(t, parent.Process.Pid)
	gone(t, pids, 10*time.Second)
	t.Logf("%d processes ended %v after the start, the limit was %v", len(pids), time.Since(began), left)
	require.Equal(t, "T", stateOf(parent.Process.Pid))
}

// After a pause of all processes beyond the limit the program is killed at once, without its time to end.
func TestParent_StoppedWithItsKeeper(t *testing.T) {
	o, file := options(t, `
trap "echo told >> $PIDS.told" TERM
echo $$ >> $PIDS
while :; do sleep 0.01; done`)
	const left = 2 * time.Second
	o.Notice = time.Second
	began := time.Now()
	parent := startParent(t, o, left)
	pids := started(t, file, 1)
	supervisor := parentOf(pids[0])
	for _, pid := range []int{parent.Process.Pid, supervisor, pids[0]} {
		freeze(t, pid)
	}
	require.Less(t, time.Since(began), left-o.Notice, "too slow to test this")
	require.Eventually(t, func() bool { return time.Since(began) > left+200*time.Millisecond }, time.Minute,
		10*time.Millisecond)
	require.Equal(t, "T", stateOf(pids[0]))
	for _, pid := range []int{pids[0], parent.Process.Pid, supervisor} {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	took := gone(t, pids, 10*time.Second)
	t.Logf("ended %v after it went on", took)
	require.Less(t, took, time.Second)
	require.NoFileExists(t, file+".told")
}

// Two programs at a time do not know each other.
func TestKill_OnlyItsOwn(t *testing.T) {
	o, file := options(t, "echo $$ >> $PIDS; exec sleep 300")
	one, other := begin(t, o), begin(t, o)
	pids := started(t, file, 2)
	one.Kill("the lease is lost")
	ended(t, one, []int{one.Pid()})
	require.ElementsMatch(t, []int{one.Pid(), other.Pid()}, pids)
	require.True(t, proc.Running(other.Pid()))
}
