package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// wire is a client's end of a feed: what has been written so far, and the deadlines it was written under.
type wire struct {
	header http.Header

	mu       sync.Mutex
	text     strings.Builder
	status   int
	deadline time.Time
	naked    int // writes without a deadline
	stuck    bool
}

func (w *wire) Header() http.Header { return w.header }

func (w *wire) WriteHeader(status int) { w.status = status }

func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deadline.IsZero() {
		w.naked++
	}
	if w.stuck { // the buffers between here and the client are full
		time.Sleep(time.Until(w.deadline))
		return 0, errors.New("i/o timeout")
	}
	return w.text.Write(b)
}

func (w *wire) FlushError() error { return nil }

func (w *wire) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	return nil
}

// taken returns what was written since it was called last.
func (w *wire) taken() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text.String()
	w.text.Reset()
	return text
}

// event is one event of a feed.
type event struct{ id, name, data string }

func parse(t *testing.T, text string) (all []event) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e event
		for l := range strings.SplitSeq(block, "\n") {
			key, value, ok := strings.Cut(l, ":")
			require.True(t, ok, "%q", l)
			switch value = strings.TrimPrefix(value, " "); key {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				require.Empty(t, e.data, "one line each")
				e.data = value
			case "", "retry":
			default:
				t.Fatalf("%q", l)
			}
		}
		if e.name != "" {
			all = append(all, e)
		}
	}
	return all
}

func names(all []event) (s string) {
	for _, e := range all {
		s += e.name + " "
	}
	return strings.TrimSpace(s)
}

// watching opens a feed inside a bubble. gone closes the client's end and waits for the handler to return.
func watching(s *Server, lastID string) (w *wire, gone func()) {
	w = &wire{header: make(http.Header), status: 200}
	ctx, cancel := context.WithCancel(context.Background())
	r := httptest.NewRequest(http.MethodGet, "/events", http.NoBody).WithContext(ctx)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.events(w, r)
	}()
	return w, func() { cancel(); <-done }
}

// clients is how many feeds are open.
func (s *Server) clients() int { return len(s.feed.open) }

func bare(f *fake) *Server {
	return &Server{log: slog.New(slog.DiscardHandler), feed: newFeed(f), ending: make(chan struct{})}
}

func TestFeed_SendsWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := whole(3)
		s := bare(f)
		w, gone := watching(s, "")
		defer gone()
		text := w.taken()
		require.True(t, strings.HasPrefix(text, "retry: 2000\n\n"))
		first := parse(t, text)
		require.Equal(t, "state occurrence", names(first))
		var got struct {
			Now   int64
			State struct {
				Boot   string
				Status downing.Status
				Health struct{ Ready struct{ OK bool } }
				Config Config
			}
		}
		require.NoError(t, json.Unmarshal([]byte(first[0].data), &got))
		require.Equal(t, time.Now().UnixMilli(), got.Now)
		require.Equal(t, f.Config(), got.State.Config)
		require.Equal(t, f.Status(), got.State.Status)
		require.True(t, got.State.Health.Ready.OK)
		require.Equal(t, got.State.Boot+"-1", first[1].id)

		time.Sleep(10 * time.Second)
		require.Empty(t, w.taken(), "nothing has changed")
		f.happened(noon, downing.OccurredUnreachable, "n3 is unreachable").happened(noon, downing.OccurredSuspended,
			"suspended")
		f.set(func(f *fake) { f.status.Unreachable = []string{"n3"} })
		time.Sleep(pollEvery)
		next := parse(t, w.taken())
		require.Equal(t, "state occurrence occurrence", names(next),
			"the whole state and what is new in the history, at once")
		require.Contains(t, next[0].data, `"unreachable":["n3"]`)
		f.happened(noon, "told", "told n3")
		time.Sleep(pollEvery)
		last := parse(t, w.taken())
		require.Equal(t, "occurrence", names(last), "the state is the same")
		require.Contains(t, last[0].data, "told n3")
		require.Zero(t, w.naked, "every write has a deadline")
		require.Zero(t, w.deadline, "and none is left over to end a stream that is idle")
	})
}

func TestFeed_LastEventID(t *testing.T) {
	for _, tc := range []struct {
		name, id string
		want     int
	}{
		{"none", "", 4}, {"the second", "BOOT-2", 2}, {"the newest", "BOOT-4", 0}, {"one that never was", "BOOT-99", 4}, {"of another process", "zzzzzzzz-2", 4},
		{"no number", "BOOT-x", 4}, {"negative", "BOOT--1", 4}, {"too large", "BOOT-99999999999999999999999", 4}, {"junk", "\x00,-", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := whole(3)
				for i := range 3 {
					f.happened(noon, "told", fmt.Sprint(i))
				}
				s := bare(f)
				w, gone := watching(s, strings.Replace(tc.id, "BOOT", s.feed.boot, 1))
				defer gone()
				require.Equal(t, tc.want, strings.Count(w.taken(), "event: occurrence"))
			})
		})
	}
}

func TestFeed_SignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, gone := watching(bare(whole(3)), "")
		defer gone()
		w.taken()
		time.Sleep(aliveTime - time.Second)
		require.Empty(t, w.taken())
		time.Sleep(time.Second + pollEvery)
		require.Equal(t, "alive", names(parse(t, w.taken())))
		time.Sleep(4 * aliveTime)
		require.Equal(t, 4, strings.Count(w.taken(), ": keep-alive\n"))
	})
}

// The source is asked four times a second, however many watch, and not at all when nobody does.
func TestFeed_AsksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := whole(3)
		s := bare(f)
		time.Sleep(time.Hour)
		require.Zero(t, f.times())
		var all []func()
		for range maxFeeds {
			_, gone := watching(s, "")
			all = append(all, gone)
			time.Sleep(7 * time.Millisecond) // out of step
		}
		before := f.times()
		time.Sleep(10 * time.Second)
		require.InDelta(t, 40, f.times()-before, 1)
		for _, gone := range all {
			gone()
		}
		before = f.times()
		time.Sleep(time.Hour)
		require.Equal(t, before, f.times())
	})
}

func TestFeed_IsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bare(whole(3))
		var all []func()
		for range maxFeeds {
			w, gone := watching(s, "")
			require.Equal(t, 200, w.status)
			all = append(all, gone)
		}
		synctest.Wait()
		w, gone := watching(s, "")
		require.Contains(t, w.taken(), "32 feeds are open already")
		require.Equal(t, http.StatusServiceUnavailable, w.status)
		require.NotEmpty(t, w.header.Get("Retry-After"))
		gone()
		all[0]()
		w, gone = watching(s, "")
		require.Contains(t, w.taken(), "event: state", "whoever leaves makes room")
		gone()
		for _, gone := range all[1:] {
			gone()
		}
		require.Zero(t, s.clients())
	})
}

// A client that takes nothing is cut off in time, and nothing is piled up for it or because of it.
func TestFeed_StuckClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := whole(3)
		s := bare(f)
		stuck, gone := watching(s, "")
		defer gone()
		well, leave := watching(s, "")
		defer leave()
		stuck.taken()
		well.taken()
		stuck.mu.Lock()
		stuck.stuck = true
		stuck.mu.Unlock()
		for i := range 8 {
			f.set(func(f *fake) { f.status.Lease.Token = uint64(i + 1) })
			time.Sleep(pollEvery)
			synctest.Wait()
		}
		require.Equal(t, 8, strings.Count(well.text.String(), "event: state"), "the others are not delayed")
		require.Equal(t, 2, s.clients())
		time.Sleep(sendTime)
		synctest.Wait()
		require.Equal(t, 1, s.clients(), "it was let go")
		require.Empty(t, stuck.text.String())
	})
}

// A timeout for ordinary requests does not end a feed over a real connection.
func TestFeed_OutlivesTheTimeoutsOfRequests(t *testing.T) {
	noLeaks(t)
	f := whole(3)
	s, err := New(Options{Listen: "127.0.0.1:0", Source: f})
	require.NoError(t, err)
	s.http.ReadTimeout, s.http.WriteTimeout, s.http.IdleTimeout = 300*time.Millisecond, 300*time.Millisecond,
		300*time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	a, err := http.Get("http://" + s.Addr().String() + "/events")
	require.NoError(t, err)
	defer a.Body.Close()
	require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	await := func(want string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the feed ended before %q: %v", want, lines.Err())
	}
	await(`"token":0`)
	began := time.Now()
	for i := 2; time.Since(began) < time.Second; i++ { // longer than every timeout
		f.set(func(f *fake) { f.status.Lease.Token = uint64(i) })
		await(fmt.Sprintf(`"token":%d`, i))
	}
	cancel()
	require.NoError(t, <-ended)
}

func FuzzEventID(f *testing.F) {
	for _, id := range []string{"", "-", "abc-1", "abc-", "abc-18446744073709551616", "x-1", "abc-+1",
		"abc-1-1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		seen := (&feed{boot: "abc"}).parseEventID(id)
		if seen != 0 {
			require.True(t, strings.HasPrefix(id, "abc-"))
			require.Equal(t, fmt.Sprint(seen), strings.TrimLeft(strings.TrimPrefix(id, "abc-"), "0"))
		}
	})
}

func TestJournal_IsBounded(t *testing.T) {
	var j Journal
	require.Empty(t, j.Entries())
	for i := range 10_000 {
		kind := "told"
		if i%100 == 0 {
			kind = downing.OccurredVerdict
		}
		j.Record(downing.Occurrence{Kind: kind, Text: fmt.Sprint(i)})
	}
	all := j.Entries()
	require.LessOrEqual(t, len(all), keepEntries+keepVerdicts)
	verdicts := 0
	for i, e := range all {
		require.Equal(t, fmt.Sprint(e.ID-1), e.Text)
		if i > 0 {
			require.Greater(t, e.ID, all[i-1].ID, "oldest first, each once")
		}
		if e.Kind == downing.OccurredVerdict {
			verdicts++
		}
	}
	require.Equal(t, keepVerdicts, verdicts, "a noisy night does not push them out")
	require.EqualValues(t, 10_000, all[len(all)-1].ID)
	require.LessOrEqual(t, cap(j.entries), 2*keepEntries)
}

func TestJournal_SharesNothing(t *testing.T) {
	var j Journal
	v := &sbr.Verdict{Token: 1, Down: []sbr.ID{"n2#a"}}
	j.Record(downing.Occurrence{Kind: downing.OccurredVerdict, Verdict: v})
	v.Down[0] = "n1#b"
	before := j.Entries()
	j.Record(downing.Occurrence{Kind: "told"})
	require.Equal(t, sbr.ID("n2#a"), before[0].Verdict.Down[0])
	require.Len(t, before, 1)
}

func TestJournal_Concurrently(t *testing.T) {
	var j Journal
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				j.Record(downing.Occurrence{Kind: "told"})
				j.Entries()
			}
		})
	}
	wg.Wait()
	all := j.Entries()
	require.EqualValues(t, 2000, all[len(all)-1].ID)
}
