package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// events is a feed: the whole state whenever it has changed, and what has happened since the client's last event. A client that does not keep
// up misses states, never the newest; what is kept for it is a number and the one event that is being written.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies
	if r.Method == http.MethodHead {
		return
	}
	if !s.feed.enter() {
		h.Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d feeds are open already: close one", maxFeeds), http.StatusServiceUnavailable)
		return
	}
	defer s.feed.leave()
	c := &client{feed: s.feed, w: w, control: http.NewResponseController(w), seen: s.feed.parseEventID(r.Header.Get("Last-Event-ID"))}
	fmt.Fprintf(&c.buf, "retry: %d\n\n", retryTime.Milliseconds())
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := c.send(false); err != nil {
			s.feedEnded(err)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ending:
			s.feedEnded(c.send(true)) // the last thing that is to be seen of a member that goes down is that it did
			return
		case <-tick.C:
		}
	}
}

func (s *Server) feedEnded(err error) {
	if err != nil {
		s.log.Debug("sbr: a feed of the status page ended", "error", err)
	}
}

// client is one open feed.
type client struct {
	feed    *feed
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
	version uint64    // of the state that was sent
	seen    uint64    // id of the entry that was sent
	sent    time.Time // when something was sent
}

// send writes what the client does not have yet, or a sign of life if there was nothing to write for long.
func (c *client) send(force bool) error {
	m, err := c.feed.latest(force)
	if err != nil {
		return err
	}
	now := time.Now()
	if m.version != c.version {
		fmt.Fprintf(&c.buf, "event: state\ndata: {\"now\":%d,\"state\":%s}\n\n", now.UnixMilli(), m.state)
		c.version = m.version
	}
	if n := len(m.entries); n == 0 || c.seen > m.entries[n-1].ID {
		c.seen = 0 // no id of ours
	}
	for i := range m.entries {
		if e := &m.entries[i]; e.ID > c.seen {
			a := c.feed.entry(e)
			text, err := json.Marshal(a)
			if err != nil {
				return err
			}
			fmt.Fprintf(&c.buf, "id: %s\nevent: occurrence\ndata: %s\n\n", a.ID, text)
			c.seen = e.ID
		}
	}
	if c.buf.Len() == 0 && now.Sub(c.sent) >= aliveTime {
		fmt.Fprintf(&c.buf, ": keep-alive\nevent: alive\ndata: {\"now\":%d}\n\n", now.UnixMilli())
	}
	if c.buf.Len() == 0 {
		return nil
	}
	c.sent = now
	if err := c.control.SetWriteDeadline(now.Add(sendTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := c.w.Write(c.buf.Bytes()); err != nil {
		return err
	}
	if c.buf.Reset(); c.buf.Cap() > keepBuffer {
		c.buf = bytes.Buffer{}
	}
	if err := c.control.Flush(); err != nil {
		return err
	}
	// Under HTTP/2 a deadline that passes ends the stream although nothing is being written.
	if err := c.control.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// keepBuffer is how much of its buffer a client keeps between two events.
const keepBuffer = 16 << 10
