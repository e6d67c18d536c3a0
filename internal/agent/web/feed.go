package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// What feeds may cost.
const (
	maxFeeds  = 32
	pollEvery = 250 * time.Millisecond // how often the source is asked, for all feeds together
	aliveTime = 15 * time.Second       // between two keep-alives
	sendTime  = 5 * time.Second        // for one event to be taken
	retryTime = 2 * time.Second        // what a client is told to wait before it comes back
)

// feed is what all clients of /events share: the newest state, encoded once. A client that needs it renews
// it; nothing runs by itself.
type feed struct {
	source Source
	// boot tells this process from an earlier one: ids of entries begin anew.
	boot string
	open chan struct{} // holds one for each client

	mu  sync.Mutex
	at  time.Time
	now *moment
}

// moment is one state. It does not change.
type moment struct {
	version uint64
	// state is the JSON of the state but for the time.
	state   []byte
	entries []Entry
}

func newFeed(s Source) *feed {
	return &feed{source: s, boot: strings.ToLower(rand.Text()[:8]), open: make(chan struct{}, maxFeeds),
		now: &moment{}}
}

// latest is the newest state; unless forced, a state younger than pollEvery is new enough.
func (f *feed) latest(force bool) (*moment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := time.Since(f.at); f.now.version > 0 && age < pollEvery && !force {
		return f.now, nil
	}
	entries := f.source.Journal()
	state, err := json.Marshal(f.state())
	if err != nil {
		return nil, err
	}
	next := &moment{version: f.now.version, state: state, entries: entries}
	if !bytes.Equal(state, f.now.state) {
		next.version++
	}
	f.at, f.now = time.Now(), next
	return next, nil
}

// state is what a feed and the page are given.
type state struct {
	Boot   string         `json:"boot"`
	Zone   zone           `json:"zone"`
	Status downing.Status `json:"status"`
	Health Health         `json:"health"`
	Config Config         `json:"config"`
}

// zone is where the member runs: times are shown as in its log.
type zone struct {
	Name   string `json:"name"`
	Offset int    `json:"offset"` // ahead of UTC, in seconds
}

func (f *feed) state() state {
	s := state{Boot: f.boot, Status: f.source.Status(), Health: f.source.Health(), Config: f.source.Config()}
	s.Zone.Name, s.Zone.Offset = time.Now().Local().Zone()
	return s
}

// occurrence is an Entry as JSON.
type occurrence struct {
	ID string `json:"id"`
	downing.Occurrence
}

func (f *feed) occurrence(e *Entry) occurrence {
	return occurrence{f.boot + "-" + strconv.FormatUint(e.ID, 10), e.Occurrence}
}

// parseEventID reads the id that a client has seen last; an id of another process counts as nothing seen.
func (f *feed) parseEventID(id string) (seen uint64) {
	boot, n, _ := strings.Cut(id, "-")
	seen, err := strconv.ParseUint(n, 10, 64)
	if err != nil || boot != f.boot {
		return 0
	}
	return seen
}

// events is a feed: the whole state whenever it has changed, and the entries since the client's last event. A
// slow client misses states, never the newest; the server keeps a number and the event being written for it.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies
	if r.Method == http.MethodHead {
		return
	}
	select {
	case s.feed.open <- struct{}{}:
		defer func() { <-s.feed.open }()
	default:
		h.Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d feeds are open already: close one", maxFeeds), http.StatusServiceUnavailable)
		return
	}
	c := &client{feed: s.feed, w: w, control: http.NewResponseController(w),
		seen: s.feed.parseEventID(r.Header.Get("Last-Event-ID"))}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := c.send(false); err != nil {
			return // the client is gone
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ending:
			_ = c.send(true) // the last thing that is to be seen of a member that goes down is that it did
			return
		case <-tick.C:
		}
	}
}

// client is one open feed.
type client struct {
	feed    *feed
	w       http.ResponseWriter
	control *http.ResponseController
	version uint64    // of the state that was sent
	seen    uint64    // id of the entry that was sent
	sent    time.Time // when something was sent
}

// send writes what the client does not have yet, or a keep-alive if there was nothing to write for long.
func (c *client) send(force bool) error {
	m, err := c.feed.latest(force)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	now := time.Now()
	if c.sent.IsZero() {
		fmt.Fprintf(&buf, "retry: %d\n\n", retryTime.Milliseconds())
	}
	if m.version != c.version {
		fmt.Fprintf(&buf, "event: state\ndata: {\"now\":%d,\"state\":%s}\n\n", now.UnixMilli(), m.state)
		c.version = m.version
	}
	if n := len(m.entries); n == 0 || c.seen > m.entries[n-1].ID {
		c.seen = 0 // no id of ours
	}
	for i := range m.entries {
		if e := &m.entries[i]; e.ID > c.seen {
			a := c.feed.occurrence(e)
			text, err := json.Marshal(a)
			if err != nil {
				return err
			}
			fmt.Fprintf(&buf, "id: %s\nevent: occurrence\ndata: %s\n\n", a.ID, text)
			c.seen = e.ID
		}
	}
	if buf.Len() == 0 && now.Sub(c.sent) >= aliveTime {
		fmt.Fprintf(&buf, ": keep-alive\nevent: alive\ndata: {\"now\":%d}\n\n", now.UnixMilli())
	}
	if buf.Len() == 0 {
		return nil
	}
	c.sent = now
	if err := c.until(now.Add(sendTime)); err != nil {
		return err
	}
	if _, err := c.w.Write(buf.Bytes()); err != nil {
		return err
	}
	if err := c.control.Flush(); err != nil {
		return err
	}
	// Under HTTP/2 a deadline that passes ends the stream although nothing is being written.
	return c.until(time.Time{})
}

// until sets until when what is written must have been taken; zero: for ever.
func (c *client) until(at time.Time) error {
	if err := c.control.SetWriteDeadline(at); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
