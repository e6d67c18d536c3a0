package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// AgentOptions are the settings of OverAgent. URL, HTTP, Singleton, StopTimeout, Lock
// and Log are required.
type AgentOptions struct {
	// URL is where the agent listens, without a path. Token is the token that the agent requires; empty:
	// none.
	URL, Token string
	// HTTP sends the request. It must not bound its time.
	HTTP *http.Client
	// Singleton is the name of the singleton; Endpoint is where callers reach the program, may be empty.
	Singleton, Endpoint string
	// StopTimeout is how long the program may take to end.
	StopTimeout time.Duration
	// Lock is the path of a file that is locked for as long as something of the program may be left, by its
	// supervisor as well: another process waits for the lock.
	Lock string
	// Once: do not wait after the singleton was seen to run elsewhere.
	Once bool
	// Version is the version of this program, for people.
	Version string
	// Log takes what happens.
	Log *slog.Logger
}

// Agent gives the turns of a singleton that an agent of this machine runs: Next is the Guard. It belongs to
// one goroutine.
//
// The program may run until the agent says that it has to stop, or has not confirmed for ValidFor that it may
// go on. The program is stopped as well when the connection to the agent ends. While the agent does not
// answer, Next tries again and again.
type Agent struct {
	opt    AgentOptions
	log    *slog.Logger
	client string

	lock *os.File
	link *link
	// ended is the end that could not be reported on the last connection.
	ended *Ended
}

// Pauses between two attempts.
const (
	againFirst = 200 * time.Millisecond
	againMost  = 5 * time.Second
	lockEvery  = 500 * time.Millisecond
	// closeTime bounds how long the agent may take to detach.
	closeTime = 5 * time.Second
	// leaveMargin is how much longer than its patience the agent may take to find a successor.
	leaveMargin = 5 * time.Second
)

// OverAgent returns an Agent for the runs of a singleton that an agent of this machine decides. Close it.
func OverAgent(o AgentOptions) *Agent {
	return &Agent{opt: o, log: o.Log.With("singleton", o.Singleton), client: strings.ToLower(rand.Text())}
}

// Next is a program.Guard. The error is ctx's cause, wraps program.ErrElsewhere, or says why the agent will
// never take this program. When ctx ends the agent has some seconds to detach the program.
func (a *Agent) Next(ctx context.Context) (*program.Turn, error) {
	if err := a.takeLock(ctx); err != nil {
		return nil, err
	}
	for {
		if err := a.connect(ctx); err != nil {
			return nil, err
		}
		elsewhere := a.link.elsewhere
		if !a.opt.Once {
			elsewhere = nil
		}
		select {
		case t := <-a.link.starts:
			if t.Stop.Err() != nil {
				a.giveBack(t, Ended{Again: true})
				continue
			}
			return a.begin(t)
		case where := <-elsewhere:
			return nil, fmt.Errorf("%w: on %s, under token %d", program.ErrElsewhere, where.Member, where.Token)
		case <-a.link.ctx.Done():
			a.log.Warn("sbr: the agent is gone; attaching again", "because", context.Cause(a.link.ctx))
		case <-ctx.Done():
			if t := a.part(true); t != nil {
				return a.begin(t)
			}
			return nil, context.Cause(ctx)
		}
	}
}

// begin makes a run ready for its program.
func (a *Agent) begin(t *turn) (*program.Turn, error) {
	if err := t.prepare(a.opt.Lock, a.opt.Singleton, &a.link.attached); err != nil {
		a.giveBack(t, Ended{Why: err.Error()})
		return nil, err
	}
	t.Lock, t.Leave = a.lock, func() { a.leave(t) }
	t.Done = func(e program.End) {
		state, err := t.left()
		if err != nil {
			a.log.Warn("sbr: the state for the next run is lost", "problem", err)
		}
		a.giveBack(t, Ended{Again: e.Again, Why: Text(e.Why), State: state})
	}
	return &t.Turn, nil
}

// part detaches and waits until the agent has closed. The agent may have asked another run to end already:
// then nothing runs until this process has run, or another member has asked all others again. So with take,
// part returns a turn that comes meanwhile.
func (a *Agent) part(take bool) *turn {
	a.link.leave()
	bound := time.After(closeTime)
	for {
		select {
		case t := <-a.link.starts:
			if take && t.Stop.Err() == nil {
				return t
			}
			a.giveBack(t, Ended{})
		case <-a.link.ctx.Done():
			return nil
		case <-bound:
			a.disconnect() // the agent has had its time
			return nil
		}
	}
}

// takeLock waits until no other process on this machine manages this singleton.
func (a *Agent) takeLock(ctx context.Context) error {
	if a.lock != nil {
		return nil
	}
	lock, err := program.TryLock(a.opt.Lock)
	if err == nil && lock == nil {
		if a.opt.Once {
			return fmt.Errorf("%w: another sbr run on this machine manages this singleton (%s)", program.ErrElsewhere,
				a.opt.Lock)
		}
		a.log.Warn("sbr: another sbr run on this machine manages this singleton; waiting for it to exit", "lock",
			a.opt.Lock)
	}
	for err == nil && lock == nil {
		if err := sleep.For(ctx, lockEvery); err != nil {
			return err
		}
		lock, err = program.TryLock(a.opt.Lock)
	}
	if err != nil {
		return fmt.Errorf("%w: set TMPDIR to a folder that can be written", err)
	}
	a.lock = lock
	return nil
}

// connect retries to attach, unless this process is attached.
func (a *Agent) connect(ctx context.Context) error {
	if a.link != nil && a.link.ctx.Err() == nil {
		return nil
	}
	a.disconnect()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = againFirst, againMost
	last := ""
	link, err := backoff.Retry(ctx, func() (*link, error) {
		link, err := a.dial(ctx)
		var no *Refusal
		switch {
		case !errors.As(err, &no):
		case no.Status == http.StatusConflict && a.opt.Once:
			err = backoff.Permanent(fmt.Errorf("%w: %w", program.ErrElsewhere, err))
		case no.forGood():
			err = backoff.Permanent(err)
		}
		return link, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			if err.Error() != last {
				last = err.Error()
				a.log.Warn("sbr: not attached to the agent; trying again and again", "agent", a.opt.URL, "problem", last)
			}
		}))
	if err != nil {
		return err
	}
	a.link, a.ended = link, nil
	a.log.Info("sbr: attached to the agent", "agent", a.opt.URL, "member", link.attached.Member, "system",
		link.attached.System)
	return nil
}

func (a *Agent) dial(ctx context.Context) (*link, error) {
	return dial(ctx, &a.opt, a.log, Attach{
		Singleton: a.opt.Singleton, Endpoint: a.opt.Endpoint, Client: a.client, PID: os.Getpid(),
		StopTimeout: Duration(a.opt.StopTimeout),
		Version:     a.opt.Version, Ended: a.ended,
	})
}

func (a *Agent) disconnect() {
	if a.link != nil {
		a.link.close()
		a.link = nil
	}
}

// leave asks the agent to look for a successor, for its patience, and to stop the program then. Without a
// connection the program is stopped at once.
func (a *Agent) leave(t *turn) {
	patience := time.Duration(a.link.attached.Patience) + leaveMargin
	a.link.leave()
	t.bound = time.AfterFunc(patience, func() {
		t.tell(fmt.Errorf("leaving; nobody has taken over within %v", patience), false)
	})
}

// giveBack tells the agent that nothing is left of a run; now, or when this process is attached again.
func (a *Agent) giveBack(t *turn, e Ended) {
	e.Run = t.run
	t.over()
	if !a.link.end(t, &e) {
		a.ended = &e
	}
}

// Close hands the singleton over if it is this process's turn, and releases everything. It takes seconds at
// most: nothing of the program may be left.
func (a *Agent) Close() {
	if a.link != nil {
		a.part(false)
	}
	a.disconnect()
	if a.lock != nil {
		_ = a.lock.Close() // the kernel does it at the latest when this process ends
		a.lock = nil
	}
}
