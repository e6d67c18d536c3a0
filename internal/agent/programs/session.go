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
	errDeaf    = errors.New("it does not read")
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
	// ending is closed when nothing is said any more.
	ending chan struct{}
	end    sync.Once
	work   sync.WaitGroup
}

func newSession(w http.ResponseWriter, r *http.Request) *session {
	s := &session{in: attach.NewReader[attach.FromProgram](r.Body), to: w, http: http.NewResponseController(w), out: make(chan attach.FromAgent, unsent),
		heard: make(chan struct{}, 1), ending: make(chan struct{})}
	s.ctx, s.lose = context.WithCancelCause(context.WithoutCancel(r.Context()))
	return s
}

// send says something, unless bye was said, or the program does not read. It never blocks.
func (s *session) send(m attach.FromAgent) {
	select {
	case <-s.ending:
		return
	default:
	}
	select {
	case s.out <- m:
	default:
		s.lose(errDeaf)
	}
}

// run talks until the connection is lost or bye was called.
func (s *session) run(received func(attach.FromProgram)) {
	s.work.Go(s.write)
	s.work.Go(func() { s.read(received) })
	s.watch()
	_ = s.http.SetReadDeadline(time.Unix(1, 0)) // so that nobody reads any more; where that cannot be set, the server closes the connection
	s.work.Wait()
}

// bye says a last thing.
func (s *session) bye(m attach.Bye) {
	s.end.Do(func() {
		s.send(attach.FromAgent{Bye: &m})
		close(s.ending)
	})
}

func (s *session) read(received func(attach.FromProgram)) {
	for {
		m, err := s.in.Read()
		switch {
		case errors.Is(err, io.EOF):
			s.lose(errors.New("it has closed the connection"))
			return
		case err != nil:
			if errors.Is(err, attach.ErrMessage) {
				s.bye(attach.Bye{Why: attach.Text(err.Error())})
			}
			s.lose(err)
			return
		}
		select {
		case s.heard <- struct{}{}:
		default:
		}
		received(m)
	}
}

// write writes what is sent, until the end; after that nothing is.
func (s *session) write() {
	var line []byte
	put := func(m attach.FromAgent) bool {
		line = attach.Append(line[:0], m)
		_ = s.http.SetWriteDeadline(time.Now().Add(writeTime)) // or that of the server
		_, err := s.to.Write(line)
		if err == nil {
			err = s.http.Flush()
		}
		if err != nil {
			s.lose(err)
		}
		return err == nil
	}
	for {
		select {
		case m := <-s.out:
			put(m)
		case <-s.ctx.Done():
			s.rest(put)
			return
		case <-s.ending:
			s.rest(put)
			s.lose(errGoodbye)
			return
		}
	}
}

// rest writes what still waits, if it can be written.
func (s *session) rest(put func(attach.FromAgent) bool) {
	for len(s.out) > 0 && put(<-s.out) {
	}
}

// watch ends a session that is silent, counted while this process runs: a ticker does not make up for ticks that nobody took.
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
