//go:build unix

package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Run runs the program in turn after turn, until it ends by itself, or a signal ends it. It returns the exit
// status: that of the program, 128+n for a signal n, 0 for ErrElsewhere. An error says that nothing could be
// run, or not to its end.
func Run(ctx context.Context, o RunOptions) (status int, err error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Signals == nil {
		signals := own()
		defer signal.Stop(signals)
		o.Signals = signals
	}
	r := &runner{RunOptions: o}
	for {
		turn, err := r.wait(ctx)
		var ended signalled
		switch {
		case errors.As(err, &ended):
			o.Log.Info("sbr: ended while waiting", "signal", ended.String())
			return 128 + int(ended), nil
		case errors.Is(err, ErrElsewhere):
			o.Log.Info("sbr: not running it here", "because", err.Error())
			return 0, nil
		case err != nil:
			return 0, err
		}
		end, err := r.turn(turn)
		turn.Done(end)
		if !end.Again {
			return end.Status.ExitCode(), err
		}
	}
}

// own receives the signals of this process that are for the program. What is ignored here (nohup) stays so,
// there as well.
func own() chan os.Signal {
	signals := make(chan os.Signal, 64)
	for _, sig := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGWINCH,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals
}

// signalled is the cause of a context that a signal has ended.
type signalled syscall.Signal

func (s signalled) String() string { return syscall.Signal(s).String() }

// Error implements error. It is never printed.
func (s signalled) Error() string { return s.String() }

// runner is one Run.
type runner struct {
	RunOptions
	signal syscall.Signal // that has ended it, if one has
}

// wait returns the next turn.
func (r *runner) wait(ctx context.Context) (*Turn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type answer struct {
		turn *Turn
		err  error
	}
	next := make(chan answer, 1)
	go func() {
		turn, err := r.Guard(ctx)
		next <- answer{turn, err}
	}()
	for {
		select {
		case sig := <-r.Signals:
			if s, ok := ends(sig); ok {
				cancel(signalled(s))
			}
		case a := <-next:
			if cause := context.Cause(ctx); cause != nil && a.err == nil && !r.lateTurn(a.turn, cause) {
				a.turn.Done(End{Why: cause.Error()})
				return nil, cause
			}
			return a.turn, a.err
		}
	}
}

// lateTurn reports whether a turn that came together with the ending signal is taken: if other members wait
// for the turn, a successor is found sooner while the program runs.
func (r *runner) lateTurn(t *Turn, cause error) bool {
	var ended signalled
	if t.Leave == nil || r.Once || !errors.As(cause, &ended) {
		return false
	}
	r.signal = syscall.Signal(ended)
	r.Log.Info("sbr: stop requested; the program runs until a successor is ready", "signal", r.signal.String())
	t.Leave()
	return true
}

// turn runs the program for one turn, and returns when nothing of it is left. The error says why it was not
// run, or not to its end.
func (r *runner) turn(t *Turn) (End, error) {
	o := r.Program
	until := t.Valid()
	o.Env, o.Until, o.Notice, o.Orphaned = environment(o.Env, t.Facts), until, t.Notice, t.Orphaned
	o.Lock, o.Log = t.Lock, r.Log
	began := time.Now()
	p, err := Start(o)
	switch {
	case errors.Is(err, ErrTooLate):
		return End{Again: true, Why: err.Error()}, nil
	case err != nil:
		return End{Why: err.Error()}, err
	}
	r.Log.Info("sbr: running the program", "pid", p.Pid(), "token", t.Token)
	r.supervise(p, t, until)
	e := End{Ran: true, Status: p.Status(), Why: p.Status().Because}
	log := r.Log.With("pid", p.Pid(), "exit-status", e.Status.ExitCode())
	switch {
	case e.Why == "":
		e.Why = fmt.Sprintf("it has ended by itself, with exit status %d", e.Status.ExitCode())
		log.Info("sbr: the program has ended")
		r.hold(t, time.Until(began.Add(r.HoldFor)))
		return e, nil
	case r.signal == 0 && r.Once:
		err = fmt.Errorf("the program was stopped before its end: %s", e.Why)
	default:
		e.Again = r.signal == 0
	}
	log.Info("sbr: the program has ended, with all that it has started", "because", e.Why)
	return e, err
}

// supervise supervises a program until nothing of it is left.
func (r *runner) supervise(p *Program, t *Turn, until time.Time) {
	tick := time.NewTicker(lookAt(until))
	defer tick.Stop()
	stop, over := t.Stop.Done(), t.Over.Done()
	for {
		select {
		case <-p.Ended():
			return
		case <-over:
			stop, over = nil, nil
			p.Kill(context.Cause(t.Over).Error())
		case <-stop:
			stop = nil
			if t.Over.Err() == nil {
				p.Stop(context.Cause(t.Stop).Error(), syscall.SIGTERM)
			}
		case <-tick.C:
			if now := t.Valid(); !now.Equal(until) && t.Over.Err() == nil {
				until = now
				p.Extend(until)
			}
		case sig := <-r.Signals:
			r.pass(p, t, sig)
		}
	}
}

// lookAt is how often the validity of a turn is looked at.
func lookAt(until time.Time) time.Duration {
	const most, least = time.Second, 10 * time.Millisecond
	if until.IsZero() {
		return most
	}
	return min(most, max(least, time.Until(until)/20))
}

// pass forwards a signal. The first signal that ends this process may have to wait for a successor.
func (r *runner) pass(p *Program, t *Turn, sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if s != syscall.SIGINT && s != syscall.SIGTERM {
		p.Signal(s)
		return
	}
	first := r.signal == 0
	if r.signal = s; t.Leave != nil && first {
		r.Log.Info("sbr: leaving; the program runs on until a successor is ready", "signal", s.String())
		t.Leave()
		return
	}
	p.Stop("sbr run got the signal "+s.String(), s)
}

// hold keeps a turn whose program has ended.
func (r *runner) hold(t *Turn, d time.Duration) {
	if d <= 0 || r.signal != 0 {
		return
	}
	r.Log.Info("sbr: holding on to the turn", "for", d.Round(time.Millisecond))
	timer := time.After(d)
	for {
		select {
		case <-timer:
			return
		case <-t.Over.Done():
			return
		case <-t.Stop.Done():
			return
		case sig := <-r.Signals:
			if _, ok := ends(sig); ok {
				return
			}
		}
	}
}

// ends reports whether a signal ends this process while no program runs.
func ends(sig os.Signal) (syscall.Signal, bool) {
	s, ok := sig.(syscall.Signal)
	return s, ok && (s == syscall.SIGHUP || s == syscall.SIGINT || s == syscall.SIGQUIT || s == syscall.SIGTERM)
}

// environment is base with facts, which replace the values of base with the same names.
func environment(base, facts []string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(facts, func(fact string) bool { return strings.HasPrefix(fact, name+"=") })
	})
	return append(env, facts...)
}

// order is a message of the parent to the supervisor; the first order starts the program.
type order struct {
	Start  *start `json:"start,omitempty"`
	Extend *limit `json:"extend,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Stop   string `json:"stop,omitempty"`
	Kill   string `json:"kill,omitempty"`
}

type start struct {
	Options
	// They stand for those of Options. Path is one word.
	Path, Args, Env, Orphaned words
	// Limit is Options.Until.
	Limit limit
	// Terminal is the process group that has the terminal and hands it to the program. Zero: none.
	Terminal int
}

// words are strings of the system. They need not be UTF-8, as strings are in JSON.
type words []string

func (w words) MarshalJSON() ([]byte, error) {
	all := make([][]byte, len(w))
	for i := range w {
		all[i] = []byte(w[i])
	}
	return json.Marshal(all)
}

func (w *words) UnmarshalJSON(data []byte) error {
	var all [][]byte
	err := json.Unmarshal(data, &all)
	for _, word := range all {
		*w = append(*w, string(word))
	}
	return err
}

// limit is a moment by the clock that all processes of a machine share (see uptime). Zero: none.
type limit time.Duration

// limitOf is t as a limit; zero where there is no such clock. The clock is read first: after a pause of this
// process in between the limit is too early, never too late. So it is after a suspension of the machine since
// t was reckoned: the wall clock tells, where the monotonic clock stood still.
func limitOf(t time.Time) limit {
	now, ok := uptime()
	if !ok || t.IsZero() {
		return 0
	}
	at := time.Now()
	return limit(max(now+min(t.Sub(at), t.Round(0).Sub(at.Round(0))), 1))
}

// left is the time until l; ok is false if there is no limit.
func (l limit) left() (d time.Duration, ok bool) {
	now, known := uptime()
	if l == 0 || !known {
		return 0, false
	}
	return time.Duration(l) - now, true
}

// report is a message of the supervisor to the parent.
type report struct {
	// Pid answers Start, or else Problem, or Late: ErrTooLate.
	Pid     int    `json:"pid,omitempty"`
	Problem string `json:"problem,omitempty"`
	Late    bool   `json:"late,omitempty"`
	// Stopping says why the program is asked to end, Killing why it is killed.
	Stopping string `json:"stopping,omitempty"`
	Killing  string `json:"killing,omitempty"`
	// Left are the processes that do not end although they are killed.
	Left []int `json:"left,omitempty"`
	// Ended is the last report.
	Ended *Status `json:"ended,omitempty"`
}
