package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/internal/program"
)

// stubborn is a tree that ignores SIGTERM: the program, a child, one in a session of its own, and a daemon whose parents have ended: each
// a shell that waits for a sleep. The numbers of the four shells and of the four sleeps are reported.
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
	o.Log = nil
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
		require.Eventually(t, func() bool { return !process.Running(pid) }, within, time.Millisecond, "process %d still runs", pid)
	}
	return time.Since(began)
}

// Nothing survives: not who ignores SIGTERM, nor who has left the group, the session and its parents.
func TestStop_EndsTheWholeTree(t *testing.T) {
	o, file := options(t, stubborn)
	o.StopTimeout = 500 * time.Millisecond
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	p.Stop("the test says so", syscall.SIGTERM)
	took := ended(t, p, pids)
	t.Logf("%d processes ended after %v", len(pids), took)
	require.GreaterOrEqual(t, took, o.StopTimeout, "they were given their time")
	require.Less(t, took, o.StopTimeout+5*time.Second)
	require.Equal(t, program.Status{Signal: int(syscall.SIGKILL), Because: "the test says so"}, p.Status())
}

func TestKill_EndsTheWholeTreeAtOnce(t *testing.T) {
	o, file := options(t, stubborn)
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	p.Kill("the lease is lost")
	took := ended(t, p, pids)
	t.Logf("%d processes killed after %v", len(pids), took)
	require.Less(t, took, o.StopTimeout/2)
	require.Equal(t, "the lease is lost", p.Status().Because)
}

// Whoever obeys ends in peace, also those that have left the group.
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

// A program that ends by itself takes along what it has left behind, and its status is its own.
func TestProgram_LeavesNothingBehind(t *testing.T) {
	o, file := options(t, stubborn[:len(stubborn)-len("wait")]+"exit 5")
	o.StopTimeout = 300 * time.Millisecond
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	ended(t, p, pids)
	require.Equal(t, program.Status{Code: 5}, p.Status())
}

// A parent that is killed takes everything along.
func TestParent_Killed(t *testing.T) {
	o, file := options(t, stubborn)
	o.StopTimeout = 300 * time.Millisecond
	parent := startParent(t, o, 0)
	pids := started(t, file, stubbornProcesses)
	pids = append(pids, parentOf(t, pids[0]))
	require.NoError(t, parent.Process.Kill())
	t.Logf("%d processes, the supervisor included, ended %v after sbr run was killed", len(pids), gone(t, pids, 10*time.Second))
}

// The program does not outlive its time although its parent stands still.
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

// When all stood still together beyond the limit the program is killed at once, without its time to end.
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
	supervisor := parentOf(t, pids[0])
	for _, pid := range []int{parent.Process.Pid, supervisor, pids[0]} {
		freeze(t, pid)
	}
	require.Less(t, time.Since(began), left-o.Notice, "too slow to test this")
	require.Eventually(t, func() bool { return time.Since(began) > left+200*time.Millisecond }, time.Minute, 10*time.Millisecond)
	require.Equal(t, "T", stateOf(pids[0]))
	for _, pid := range []int{pids[0], parent.Process.Pid, supervisor} {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	took := gone(t, pids, 10*time.Second)
	t.Logf("ended %v after it went on", took)
	require.Less(t, took, time.Second)
	require.NoFileExists(t, file+".told")
}

// What its supervisor looked after is the parent's when the supervisor is killed.
func TestKeeper_Killed(t *testing.T) {
	o, file := options(t, stubborn)
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	require.NoError(t, syscall.Kill(parentOf(t, p.Pid()), syscall.SIGKILL))
	took := ended(t, p, pids)
	t.Logf("%d processes ended %v after the supervisor was killed", len(pids), took)
	require.Equal(t, program.Status{Signal: int(syscall.SIGKILL), Because: "its supervisor was killed"}, p.Status())
}

// A supervisor that stands still does not keep the program alive.
func TestKeeper_Stopped(t *testing.T) {
	o, file := options(t, stubborn)
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	freeze(t, parentOf(t, p.Pid()))
	p.Kill("the lease is lost")
	took := ended(t, p, pids)
	t.Logf("%d processes ended after %v", len(pids), took)
	require.Less(t, took, 5*time.Second)
}

// A bystander in the process group of the parent is nobody's program.
func TestKeeper_KilledBesideAnotherChild(t *testing.T) {
	other := exec.Command("/bin/sleep", "300")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	o, file := options(t, stubborn)
	p := begin(t, o)
	pids := started(t, file, stubbornProcesses)
	require.NoError(t, syscall.Kill(parentOf(t, p.Pid()), syscall.SIGKILL))
	ended(t, p, pids)
	require.True(t, process.Running(other.Process.Pid))
}

// Two programs at a time do not know each other.
func TestKill_OnlyItsOwn(t *testing.T) {
	o, file := options(t, "echo $$ >> $PIDS; exec sleep 300")
	one, other := begin(t, o), begin(t, o)
	pids := started(t, file, 2)
	one.Kill("the lease is lost")
	ended(t, one, []int{one.Pid()})
	require.ElementsMatch(t, []int{one.Pid(), other.Pid()}, pids)
	require.True(t, process.Running(other.Pid()))
}
