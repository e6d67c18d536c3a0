package programs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/patience"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// slot is one program that is or was attached, with its manager. It is over when the manager is.
type slot struct {
	attach   attach.Attach
	session  *session
	since    time.Time
	log      *slog.Logger
	manager  *singleton.Manager
	most     time.Duration // of what is promised at once
	notice   time.Duration
	patience time.Duration
	started  func(token uint64) // is called with that of each run

	begun    chan struct{} // the first run has begun
	over     chan struct{} // the manager has ended
	returned chan struct{} // the program's side reports that nothing of it is left
	once     sync.Once

	mu     sync.Mutex
	number uint64 // of the newest run
	now    *run   // nil: none
	// promised is when the program must have ended, by all promises sent.
	promised time.Time
	late     *attach.Ended // what it has said when it came back
}

// run is one run of the program.
type run struct {
	number uint64
	of     *singleton.Run
	told   bool // that it has to end
	ended  chan attach.Ended
}

// attend starts the manager, and manages the slot until nothing is left. ctx bounds the start. attend returns
// when the manager has started, or when the first run has begun: that run waits for its program, and setting
// the tags of the node takes time.
func (s *slot) attend(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(s.session.ctx, startTime)
	started := make(chan error, 1)
	go func() {
		defer cancel()
		started <- s.manager.Start(bounded)
	}()
	go func() {
		defer close(s.over)
		select {
		case <-s.session.ctx.Done():
			s.abandon()
		case <-s.manager.Done():
		}
		<-s.manager.Done()
	}()
	select {
	case err := <-started:
		return err
	case <-ctx.Done():
		cancel()
		return <-started
	case <-s.begun:
		go func() {
			if err := <-started; err != nil { // the manager has resigned
				s.log.Warn("sbr: a program cannot stay attached", "error", err)
			}
		}()
		return nil
	}
}

// abandon hands the singleton over: the connection to the program is lost.
func (s *slot) abandon() {
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.manager.Stop(stopped) // it says that it is still stopping
}

// where tells the program's side where the singleton runs.
func (s *slot) where() {
	l := s.manager.Locator()
	if l == nil {
		return
	}
	for at := range l.Changes(s.session.ctx) {
		s.session.send(attach.FromAgent{Where: &attach.Where{Member: at.Name, Token: at.Token}})
	}
}

// leave hands over, for as long as ctx lasts; then it waits for as long as the program may take to end.
func (s *slot) leave(ctx context.Context) {
	_ = s.manager.Stop(ctx) // it says that it is still stopping
	ctx, cancel := patience.WithTimeout(context.Background(), time.Duration(s.attach.StopTimeout)+margin,
		context.DeadlineExceeded)
	defer cancel()
	select {
	case <-s.over:
	case <-ctx.Done():
		s.log.Error("sbr: the attached program did not stop in time; leaving the cluster")
	}
}

// received handles a message of the program's side.
func (s *slot) received(m attach.FromProgram) {
	switch {
	case m.Ping != 0:
		s.pong(m.Ping)
	case m.Ended != nil:
		s.ended(*m.Ended)
	case m.Detach:
		go func() { _ = s.manager.Stop(s.session.ctx) }() // it ends with the session at the latest
	case m.Attach != nil:
		s.session.bye(attach.Bye{Why: "it is attached already"})
	}
}

// run is the singleton's function.
func (s *slot) run(ctx context.Context, r *singleton.Run) error {
	here := s.begin(r)
	if here == nil {
		return errGone
	}
	defer s.finish()
	s.started(r.Token())
	told, gone := ctx.Done(), s.session.ctx.Done()
	waited, cancel := context.Background(), context.CancelFunc(func() {})
	defer func() { cancel() }()
	for {
		select {
		case e := <-here.ended:
			return s.result(here, e)
		case <-s.returned:
			return s.result(here, s.last(here.number))
		case <-told:
			told = nil
			s.stop(here, context.Cause(ctx))
		case <-gone:
			gone = nil
			d := s.mayLast()
			s.log.Warn("sbr: the connection to the attached program is lost; waiting until the program must have ended", "because", context.Cause(s.session.ctx), "for", d.Round(time.Millisecond))
			waited, cancel = patience.WithTimeout(context.Background(), d, context.DeadlineExceeded)
		case <-waited.Done():
			s.log.Warn("sbr: the attached program did not reconnect; treating it as ended", "run", here.number)
			return errGone
		}
	}
}

var errGone = errors.New("the connection to the program is lost")

// begin tells the program's side to start, unless it is gone.
func (s *slot) begin(r *singleton.Run) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session.ctx.Err() != nil {
		return nil
	}
	if s.number++; s.number == 1 {
		close(s.begun)
	}
	s.now = &run{number: s.number, of: r, ended: make(chan attach.Ended, 1)}
	s.session.send(attach.FromAgent{Start: &attach.Start{
		Run: s.number, Token: r.Token(), State: r.State(), From: r.From(), ValidFor: s.promise(),
		Notice: attach.Duration(s.notice),
	}})
	return s.now
}

// promise is how long the run is certain from now on. s.mu is held until it is sent, so that a later message
// has a later promise.
func (s *slot) promise() attach.Duration {
	at, ok := s.now.of.Until()
	if !ok {
		return 0
	}
	now := time.Now()
	most := now.Add(s.most)
	if at.IsZero() || at.After(most) {
		at = most
	}
	if at.After(s.promised) {
		s.promised = at
	}
	return attach.Duration(max(at.Sub(now), 0))
}

func (s *slot) pong(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &attach.Pong{N: n}
	if s.now != nil && !s.now.told {
		p.Run, p.ValidFor = s.now.number, s.promise()
	}
	s.session.send(attach.FromAgent{Pong: p})
}

// stop tells the program's side that the run has to end.
func (s *slot) stop(r *run, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.told = true
	word, _ := errors.AsType[core.Cause](cause)
	s.session.send(attach.FromAgent{Stop: &attach.Stop{
		Run: r.number, Cause: string(word), Why: attach.Text(cause.Error()),
		Now: errors.Is(cause, singleton.ErrLeaseLost),
	}})
}

func (s *slot) ended(e attach.Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil && s.now.number == e.Run {
		select {
		case s.now.ended <- e:
		default: // it was said before
		}
	}
}

// back notes that the program has attached again on another connection: nothing of its last run is left.
func (s *slot) back(e *attach.Ended) {
	s.once.Do(func() {
		s.mu.Lock()
		s.late = e
		s.mu.Unlock()
		close(s.returned)
	})
	s.session.lose(errors.New("it has come back on another connection"))
}

// last is the end of a run whose end was not reported in time.
func (s *slot) last(number uint64) attach.Ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late != nil && s.late.Run == number {
		return *s.late
	}
	return attach.Ended{Run: number, Again: true}
}

func (s *slot) result(r *run, e attach.Ended) error {
	if err := r.of.HandOver(e.State); err != nil {
		s.log.Warn("sbr: the state of a program is lost", "error", err)
	}
	s.log.Info("sbr: a program has ended", "run", r.number, "again", e.Again, "because", e.Why)
	if !e.Again {
		return singleton.ErrDone
	}
	return nil
}

func (s *slot) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = nil
}

// mayLast is how long something of the program may be left once its connection is lost. A process that closes
// the connection, or dies, stops its program within the stop-timeout. Any other process may be paused: then
// the supervisor ends the program when the promised time is over.
func (s *slot) mayLast() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	promised := max(time.Until(s.promised), 0) + time.Second
	if !errors.Is(context.Cause(s.session.ctx), errHungUp) {
		return promised
	}
	return min(time.Duration(s.attach.StopTimeout)+margin, promised)
}
