package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// attachTime is how long an agent may take to answer.
	attachTime = 10 * time.Second
	// quietAfter is after how many unanswered pings the log says so.
	quietAfter = 3
)

// link is one connection to the agent.
type link struct {
	log      *slog.Logger
	attached Attached

	out       chan FromProgram
	starts    chan *turn
	elsewhere chan Where

	// ctx ends, with the reason, when the connection does.
	ctx  context.Context
	fail context.CancelCauseFunc
	work sync.WaitGroup
	left sync.Once

	mu sync.Mutex
	// sent are the times of the unanswered pings, by number. answered is the time of the newest answered
	// ping.
	sent     map[uint64]time.Time
	n        uint64
	answered time.Time
	now      *turn // started and not ended
}

// errSilent ends a link.
var errSilent = fmt.Errorf("it has not said anything for %v", Silence)

// dial attaches. The error is a *Refusal, or a network error.
func dial(ctx context.Context, o *AgentOptions, log *slog.Logger, a Attach) (*link, error) {
	l := &link{log: log, out: make(chan FromProgram, 16), starts: make(chan *turn, 1),
		elsewhere: make(chan Where, 1),
		sent:      make(map[uint64]time.Time), answered: time.Now()}
	l.ctx, l.fail = context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) })()
	late := time.AfterFunc(attachTime, func() { l.fail(fmt.Errorf("no answer within %v", attachTime)) })
	defer late.Stop()
	body, to := io.Pipe()
	l.work.Go(func() { l.write(to) })
	l.out <- FromProgram{Attach: &a}
	answer, err := l.post(o, body)
	if err != nil {
		l.fail(err)
		l.work.Wait()
		return nil, cmp.Or(context.Cause(l.ctx), err)
	}
	lines := NewReader[FromAgent](answer)
	first, err := lines.Read()
	if err == nil && first.Attached == nil {
		err = errors.New("the agent's first line does not say who it is")
	}
	if err != nil {
		l.fail(err)
		_ = answer.Close() // nothing more is read
		l.work.Wait()
		return nil, context.Cause(l.ctx)
	}
	l.attached = *first.Attached
	l.work.Go(func() { l.read(lines, answer) })
	l.work.Go(l.ping)
	return l, nil
}

func (l *link) post(o *AgentOptions, body io.ReadCloser) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, o.URL+Path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", ContentType)
	if o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+o.Token)
	}
	resp, err := o.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what cannot be read says nothing
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return nil, &Refusal{Status: resp.StatusCode, Text: line, Again: resp.Header.Get("Retry-After") != ""}
}

// write writes the messages in out, until the connection ends.
func (l *link) write(to *io.PipeWriter) {
	defer func() { _ = to.Close() }() // it never fails
	var line []byte
	for {
		select {
		case m := <-l.out:
			if m.Ping != 0 {
				l.pinged(m.Ping)
			}
			line = Append(line[:0], m)
			if _, err := to.Write(line); err != nil {
				l.fail(err)
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// pinged notes the time of a ping before it is sent.
func (l *link) pinged(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[n] = time.Now()
}

// ping asks the agent at once and then each second whether it is still there, and for how long the run may go
// on. At once, because the agent may have taken long to answer the attachment, from which a run that starts
// now is promised its time. It counts pings, not time, so that a pause of this process does not end the link.
func (l *link) ping() {
	tick := time.NewTicker(PingEvery)
	defer tick.Stop()
	for {
		l.mu.Lock()
		l.n++
		n, open, runs := l.n, len(l.sent), l.now != nil
		l.mu.Unlock()
		if open == quietAfter && runs {
			l.log.Warn("sbr: the agent does not answer; the program runs on for as long as it was allowed to")
		}
		if open >= int(Silence/PingEvery) && !runs {
			l.fail(errSilent)
			return
		}
		select {
		case l.out <- FromProgram{Ping: n}:
		default: // earlier messages are not sent yet
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *link) read(lines *Reader[FromAgent], answer io.Closer) {
	defer func() { _ = answer.Close() }()                           // nothing more is read
	defer context.AfterFunc(l.ctx, func() { _ = answer.Close() })() // so that nobody reads any more
	for {
		m, err := lines.Read()
		if errors.Is(err, io.EOF) {
			err = errors.New("it has closed the connection")
		}
		if err == nil {
			err = l.heard(m)
		}
		if err != nil {
			l.lost(err)
			return
		}
	}
}

// lost ends the link, and with it the run.
func (l *link) lost(err error) {
	l.fail(err)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		l.now.tell(fmt.Errorf("the connection to the agent has ended: %w", context.Cause(l.ctx)), false)
	}
}

// heard handles a message of the agent. An error ends the connection.
func (l *link) heard(m FromAgent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case m.Pong != nil:
		l.pong(m.Pong)
	case m.Start != nil:
		if l.now != nil {
			return fmt.Errorf("it starts run %d while run %d is not over", m.Start.Run, l.now.run)
		}
		l.now = newTurn(m.Start, l.answered)
		l.starts <- l.now // nobody has taken one only if none was over
	case m.Stop != nil:
		if l.now != nil && l.now.run == m.Stop.Run {
			l.now.tell(fmt.Errorf("%s (%s)", m.Stop.Why, m.Stop.Cause), m.Stop.Now)
		}
	case m.Where != nil:
		l.where(*m.Where)
	case m.Bye != nil:
		why := "the agent says goodbye: " + m.Bye.Why
		if m.Bye.Exit != 0 {
			why += fmt.Sprintf("; it ends with status %d", m.Bye.Exit)
		}
		return errors.New(why)
	default:
		return errors.New("it attaches a second time")
	}
	return nil
}

// pong handles an answer, and forgets all pings up to its own. l.mu is held.
func (l *link) pong(p *Pong) {
	at, ok := l.sent[p.N]
	if !ok {
		return
	}
	for n := range l.sent {
		if n <= p.N {
			delete(l.sent, n)
		}
	}
	l.answered = at
	if l.now != nil && l.now.run == p.Run {
		l.now.until.Set(at.Add(time.Duration(p.ValidFor)))
	}
}

// where keeps the newest location other than this member. l.mu is held.
func (l *link) where(w Where) {
	select {
	case <-l.elsewhere:
	default:
	}
	if w.Member != "" && w.Member != l.attached.Member {
		l.elsewhere <- w
	}
}

// end tells the agent that nothing is left of a run. It reports whether that was sent on a connection that
// has not ended.
func (l *link) end(t *turn, e *Ended) bool {
	l.mu.Lock()
	if l.now == t {
		l.now = nil
	}
	l.mu.Unlock()
	select {
	case l.out <- FromProgram{Ended: e}:
		return l.ctx.Err() == nil
	case <-l.ctx.Done():
		return false
	}
}

// leave asks the agent, once, to detach this program.
func (l *link) leave() {
	l.left.Do(func() {
		select {
		case l.out <- FromProgram{Detach: true}:
		case <-l.ctx.Done():
		}
	})
}

// close ends the connection, and waits for its end.
func (l *link) close() {
	l.fail(errors.New("closed"))
	l.work.Wait()
}
