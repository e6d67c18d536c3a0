package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/attach"
)

const (
	// firstLine is how long a program may take to say what it wants.
	firstLine = 5 * time.Second
	// writeTime is how long one line may take to be written.
	writeTime = 5 * time.Second
	// unsent is how many lines may wait to be written. A program that reads has none.
	unsent = 64
)

// Why a session is over.
var (
	errSilent  = fmt.Errorf("it has not said anything for %v", attach.Silence)
	errDeaf    = errors.New("the program does not read from its connection")
	errHungUp  = errors.New("it has closed the connection")
	errGoodbye = errors.New("detached")
)

// session is the connection to one program.
type session struct {
	in    *attach.Reader[attach.FromProgram]
	to    io.Writer
	http  *http.ResponseController
	out   chan attach.FromAgent
	heard chan struct{}

	// ctx ends, with the reason, when the connection does.
	ctx  context.Context
	lose context.CancelCauseFunc
	work sync.WaitGroup
}

func newSession(w http.ResponseWriter, r *http.Request) *session {
	s := &session{in: attach.NewReader[attach.FromProgram](r.Body), to: w, http: http.NewResponseController(w),
		out:   make(chan attach.FromAgent, unsent),
		heard: make(chan struct{}, 1)}
	s.ctx, s.lose = context.WithCancelCause(context.WithoutCancel(r.Context()))
	return s
}

// send queues a message, unless the program does not read. It never blocks. Messages after a Bye are dropped.
func (s *session) send(m attach.FromAgent) {
	select {
	case s.out <- m:
	default:
		s.lose(errDeaf)
	}
}

// run serves the connection until it is lost or bye was called.
func (s *session) run(received func(attach.FromProgram)) {
	s.work.Go(s.write)
	s.work.Go(func() { s.read(received) })
	s.watch()
	// so that nobody reads any more; where that cannot be set, the server closes the connection
	_ = s.http.SetReadDeadline(time.Unix(1, 0))
	s.work.Wait()
}

// bye sends the last message.
func (s *session) bye(m attach.Bye) { s.send(attach.FromAgent{Bye: &m}) }

func (s *session) read(received func(attach.FromProgram)) {
	for {
		m, err := s.in.Read()
		switch {
		case errors.Is(err, attach.ErrMessage):
			s.bye(attach.Bye{Why: attach.Text(err.Error())})
			s.lose(err)
			return
		case err != nil:
			s.lose(fmt.Errorf("%w: %w", errHungUp, err))
			return
		}
		select {
		case s.heard <- struct{}{}:
		default:
		}
		received(m)
	}
}

// write writes what is sent, until the end, and then what still waits, if it can be written.
func (s *session) write() {
	var line []byte
	put := func(m attach.FromAgent) (more bool) {
		line = attach.Append(line[:0], m)
		_ = s.http.SetWriteDeadline(time.Now().Add(writeTime)) // or that of the server
		_, err := s.to.Write(line)
		if err == nil {
			err = s.http.Flush()
		}
		if err == nil && m.Bye != nil {
			err = errGoodbye
		}
		if err != nil {
			s.lose(err)
		}
		return err == nil
	}
	for {
		select {
		case m := <-s.out:
			if !put(m) {
				return
			}
		case <-s.ctx.Done():
			for len(s.out) > 0 && put(<-s.out) {
			}
			return
		}
	}
}

// watch ends a session that is silent, without counting pauses of this process: a ticker drops missed ticks.
func (s *session) watch() {
	tick := time.NewTicker(attach.PingEvery)
	defer tick.Stop()
	quiet := time.Duration(0)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.heard:
			quiet = 0
		case <-tick.C:
			if quiet += attach.PingEvery; quiet > attach.Silence {
				s.lose(errSilent)
			}
		}
	}
}
