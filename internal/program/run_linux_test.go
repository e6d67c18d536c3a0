package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/proc"
	"github.com/serf-sbr/serf-sbr/internal/program"
)

var errLost, errHandOver = errors.New("lost"), errors.New("hand-over")

// script is a Guard that a test plays: it hands out the turns that it is given, and writes down how they
// ended.
type script struct {
	t     *testing.T
	turns []*program.Turn
	after error // what Next returns when there are no more
	pids  string
	ends  []program.End
}

func (s *script) Next(ctx context.Context) (*program.Turn, error) {
	if len(s.turns) == 0 && s.after == nil {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if len(s.turns) == 0 {
		return nil, s.after
	}
	turn := s.turns[0]
	s.turns, turn.Done = s.turns[1:], s.done
	return turn, nil
}

// done also proves that nothing of the program is left.
func (s *script) done(e program.End) {
	s.ends = append(s.ends, e)
	text, _ := os.ReadFile(s.pids)
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		require.NoError(s.t, err)
		require.False(s.t, proc.Running(pid), "process %d still runs", pid)
	}
}

// ender is a turn that its test can end.
type ender struct {
	*program.Turn
	stop, over context.CancelCauseFunc
	until      time.Time
}

func turn(token uint64) *ender {
	e := &ender{}
	stop, s := context.WithCancelCause(context.Background())
	over, o := context.WithCancelCause(context.Background())
	e.stop, e.over = s, o
	e.Turn = &program.Turn{
		Token: token, Stop: stop, Over: over, Facts: []string{fmt.Sprintf("SBR_TOKEN=%d", token)},
		Valid: func() time.Time { return e.until },
	}
	return e
}

// play runs a shell script in the turns; its processes write their numbers to $PIDS, and "ready" to the file
// $READY.
func play(t *testing.T, s *script, text string, change ...func(*program.RunOptions)) (
	run func() (int, error), ready func(token int)) {
	s.t = t
	o := program.RunOptions{Guard: s.Next, Signals: make(chan os.Signal)}
	o.Program, s.pids = options(t, text)
	o.Log = o.Program.Log
	readyFile := s.pids + ".ready"
	o.Program.Env = append(o.Program.Env, "READY="+readyFile, "SBR_TOKEN=stale")
	for _, c := range change {
		c(&o)
	}
	run = func() (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return program.Run(ctx, o)
	}
	ready = func(token int) {
		require.Eventually(t, func() bool {
			text, _ := os.ReadFile(readyFile)
			return string(text) == fmt.Sprintf("%d\n", token)
		}, 20*time.Second, time.Millisecond)
	}
	return run, ready
}

// obstinate is a program that ignores SIGTERM under its first token, with a child in a session of its own.
// Under the second it ends with 3.
const obstinate = `
[ $SBR_TOKEN = 2 ] && exit 3
trap "" TERM
echo $$ >>$PIDS
setsid sh -c 'echo $$ >>$PIDS; echo $SBR_TOKEN >$READY; exec sleep 300' &
wait`

// polite ends with 4 when it is told to.
const polite = `trap 'exit 4' TERM INT; echo $$ >>$PIDS; echo $SBR_TOKEN >$READY; while :; do sleep 0.01; done`

func TestRun_TurnAfterTurn(t *testing.T) {
	first, second := turn(1), turn(2)
	s := &script{turns: []*program.Turn{first.Turn, second.Turn}}
	run, ready := play(t, s, obstinate)
	go func() { ready(1); first.over(errLost) }()
	status, err := run()
	require.NoError(t, err)
	require.Equal(t, 3, status)
	require.Equal(t, []program.End{
		{Ran: true, Status: program.Status{Signal: 9, Because: "lost"}, Again: true, Why: "lost"},
		{Ran: true, Status: program.Status{Code: 3}, Why: "it has ended by itself, with exit status 3"},
	}, s.ends)
}

// A turn that is to end in peace leaves the program its time; then it is killed.
func TestRun_Stop(t *testing.T) {
	for text, want := range map[string]program.Status{
		polite: {Code: 4, Because: "hand-over"}, obstinate: {Signal: 9, Because: "hand-over"},
	} {
		first := turn(1)
		s := &script{turns: []*program.Turn{first.Turn}, after: program.ErrElsewhere}
		run, ready := play(t, s, text,
			func(o *program.RunOptions) { o.Program.StopTimeout = 300 * time.Millisecond })
		go func() { ready(1); first.stop(errHandOver) }()
		status, err := run()
		require.NoError(t, err)
		require.Zero(t, status)
		require.Equal(t, []program.End{{Ran: true, Status: want, Again: true, Why: "hand-over"}}, s.ends)
	}
}

// What Valid says reaches the supervisor: an extended turn goes on, a turn that is not extended ends by
// itself.
func TestRun_Validity(t *testing.T) {
	first := turn(1)
	first.until = time.Now().Add(time.Second)
	began := time.Now()
	end := began.Add(3 * time.Second)
	first.Valid = func() time.Time { // extended until the end is reached
		return time.Now().Add(min(time.Second, time.Until(end)))
	}
	s := &script{turns: []*program.Turn{first.Turn}, after: program.ErrElsewhere}
	run, _ := play(t, s, obstinate)
	_, err := run()
	require.NoError(t, err)
	require.Equal(t, "the permit expired and was not renewed", s.ends[0].Why)
	require.WithinRange(t, time.Now(), end, end.Add(2*time.Second))
}

// A turn that is over before the program could start is given back, and another one waited for.
func TestRun_TooLate(t *testing.T) {
	late, second := turn(1), turn(2)
	late.until = time.Now()
	s := &script{turns: []*program.Turn{late.Turn, second.Turn}}
	run, _ := play(t, s, obstinate)
	status, err := run()
	require.NoError(t, err)
	require.Equal(t, 3, status)
	require.Equal(t, program.End{Again: true, Why: program.ErrTooLate.Error()}, s.ends[0])
}

func TestRun_WhatCannotBeRun(t *testing.T) {
	s := &script{after: errLost}
	run, _ := play(t, s, obstinate)
	_, err := run()
	require.ErrorIs(t, err, errLost)

	s = &script{turns: []*program.Turn{turn(1).Turn}}
	run, _ = play(t, s, obstinate, func(o *program.RunOptions) { o.Program.Path = "/no/such/program" })
	_, err = run()
	require.ErrorContains(t, err, "start /no/such/program: no such file or directory")
	require.Equal(t, []program.End{{Why: err.Error()}}, s.ends)

	s = &script{}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	_, err = program.Run(ctx, program.RunOptions{Guard: s.Next})
	require.ErrorIs(t, err, errLost)
}

// A process that looks for a successor stops the program only after that; a second signal does not wait.
func TestRun_Leave(t *testing.T) {
	for _, impatient := range []bool{false, true} {
		first := turn(1)
		s, left := &script{turns: []*program.Turn{first.Turn}}, make(chan bool, 1)
		first.Leave = func() { left <- true }
		signals := make(chan os.Signal)
		run, ready := play(t, s, polite, func(o *program.RunOptions) { o.Signals = signals })
		go func() {
			ready(1)
			signals <- syscall.SIGTERM
			<-left
			if impatient {
				signals <- syscall.SIGINT
				return
			}
			first.stop(errHandOver)
		}()
		status, err := run()
		require.NoError(t, err)
		require.Equal(t, 4, status)
		want := "hand-over"
		if impatient {
			want = "sbr run got the signal interrupt"
		}
		require.Equal(t, []program.End{{Ran: true, Status: program.Status{Code: 4, Because: want}, Why: want}}, s.ends)
	}
}

// late is a Guard whose turn comes with the signal that ends everything.
func (s *script) late(ctx context.Context) (*program.Turn, error) {
	<-ctx.Done()
	return s.Next(ctx)
}

// What comes with the signal is run where others wait for it, and can ask for it; otherwise it is given back.
func TestRun_ATurnThatComesWithTheSignal(t *testing.T) {
	for _, once := range []bool{false, true} {
		first := turn(1)
		s, left := &script{turns: []*program.Turn{first.Turn}}, make(chan bool, 1)
		first.Leave = func() { left <- true }
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGTERM
		run, ready := play(t, s, polite,
			func(o *program.RunOptions) { o.Signals, o.Once, o.Guard = signals, once, s.late })
		go func() {
			if !once {
				<-left
				ready(1)
				first.stop(errHandOver)
			}
		}()
		status, err := run()
		require.NoError(t, err)
		if once {
			require.Equal(t, 128+15, status)
			require.Equal(t, []program.End{{Why: "terminated"}}, s.ends, "a job is not begun that is to be stopped")
			continue
		}
		require.Equal(t, 4, status)
		require.Equal(t, []program.End{{Ran: true, Status: program.Status{Code: 4, Because: "hand-over"}, Why: "hand-over"}},
			s.ends)
	}

	s := &script{turns: []*program.Turn{turn(1).Turn}}
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	run, _ := play(t, s, polite, func(o *program.RunOptions) { o.Signals, o.Guard = signals, s.late })
	status, err := run()
	require.NoError(t, err)
	require.Equal(t, 128+15, status)
	require.Equal(t, []program.End{{Why: "terminated"}}, s.ends, "nobody is asked to take over from it")
}

// A turn is kept for the time that was asked for, unless it ends or somebody ends this.
func TestRun_HoldFor(t *testing.T) {
	for name, end := range map[string]func(*ender, chan<- os.Signal){
		"over":   func(e *ender, _ chan<- os.Signal) { e.over(errLost) },
		"stop":   func(e *ender, _ chan<- os.Signal) { e.stop(errHandOver) },
		"signal": func(_ *ender, signals chan<- os.Signal) { signals <- syscall.SIGWINCH; signals <- syscall.SIGTERM },
	} {
		t.Run(name, func(t *testing.T) {
			first := turn(2)
			s := &script{turns: []*program.Turn{first.Turn}}
			signals := make(chan os.Signal)
			run, ready := play(t, s, "echo 2 >$READY; exit 3",
				func(o *program.RunOptions) { o.HoldFor, o.Signals = time.Hour, signals })
			go func() { ready(2); time.Sleep(50 * time.Millisecond); end(first, signals) }()
			status, err := run()
			require.NoError(t, err)
			require.Equal(t, 3, status)
		})
	}
	s := &script{turns: []*program.Turn{turn(2).Turn}}
	run, _ := play(t, s, obstinate, func(o *program.RunOptions) { o.HoldFor = 500 * time.Millisecond })
	began := time.Now()
	_, err := run()
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
}
