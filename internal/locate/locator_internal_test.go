package locate

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// deserted is a cluster in which nobody answers; busy: for now nothing can be asked.
type deserted struct {
	drive.Cluster
	mu    sync.Mutex
	busy  bool
	asked []time.Time
	last  news // of those that ask
	told  []news
}

func (d *deserted) Follow(func()) (stop func()) { return func() {} }

func (d *deserted) Serve(string, func(downing.Question)) (stop func(), err error) {
	return func() {}, nil
}

func (d *deserted) Peers() downing.Peers { return downing.Peers{Self: "n1#a"} }

func (d *deserted) Ask(_ string, _ sbr.ID, payload []byte, _ time.Duration) (<-chan downing.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy {
		return nil, downing.ErrTalkBusy
	}
	n, err := decodeNews(payload)
	if err != nil {
		return nil, err
	}
	if n.kind == newsWhere {
		d.asked, d.last = append(d.asked, time.Now()), n
	} else {
		d.told = append(d.told, n)
	}
	answers := make(chan downing.Answer)
	close(answers)
	return answers, nil
}

// asks are when it was asked, and what it was asked last.
func (d *deserted) asks() (at []time.Time, last news) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked), d.last
}

// says is what it was told.
func (d *deserted) says() []news {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.told)
}

func (d *deserted) setBusy(busy bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = busy
}

// in runs a test with a locator in a cluster where nobody answers.
func in(t *testing.T, slots int, test func(t *testing.T, d *deserted, l *Locator)) {
	synctest.Test(t, func(t *testing.T) {
		d := new(deserted)
		l := New(Options{Cluster: d, Topic: "at.x", What: "x", Slots: slots, Endpoint: "http://n1",
			Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, l.Start())
		defer l.Close()
		test(t, d, l)
	})
}

// News may come late and out of order: the run with the largest token is the newest, of each slot.
func TestLocator_NeverGoesBack(t *testing.T) {
	in(t, 2, func(t *testing.T, _ *deserted, l *Locator) {
		for _, step := range []struct {
			from  string
			kind  kind
			token uint64
			at    string
		}{
			{"n1#a", newsRuns, 5, "n1"},
			{"n2#b", newsRuns, 4, "n1"},
			{"n2#b", newsEnded, 4, "n1"},
			{"n2#b", newsEnded, 5, "n1"},
			{"n1#a", newsEnded, 5, ""},
			{"n2#b", newsRuns, 6, "n2"},
			{"n1#a", newsRuns, 5, "n2"},
		} {
			l.heard(sbr.ID(step.from), news{kind: step.kind, entries: []entry{{1, step.token}, {7, 99}}})
			require.Equal(t, step.at, l.Slot(1).At().Name, "%+v", step)
			require.False(t, l.Slot(0).At().Known())
		}
	})
}

// The request may be lost: the locator repeats it, for ever.
func TestLocator_AsksAgain(t *testing.T) {
	in(t, 1, func(t *testing.T, d *deserted, l *Locator) {
		time.Sleep(time.Hour)
		asks, _ := d.asks()
		require.Greater(t, len(asks), 80)
		require.WithinDuration(t, time.Now(), asks[len(asks)-1], 2*askAtMost)
	})
}

// However many callers want it to be asked, it is asked now and then.
func TestLocator_ManyCallersAskOnce(t *testing.T) {
	in(t, 1, func(t *testing.T, d *deserted, l *Locator) {
		l.heard("n2#b", news{kind: newsRuns, entries: []entry{{0, 1}}})
		time.Sleep(time.Minute)
		before, _ := d.asks()
		for range 100 {
			l.Slot(0).Refresh()
			time.Sleep(time.Millisecond)
		}
		after, _ := d.asks()
		require.Len(t, after, len(before)+1)
	})
}

// What starts and ends at about the same time is told in one message, and later if it cannot be told now.
func TestLocator_TellsWhatBelongsTogether(t *testing.T) {
	in(t, 300, func(t *testing.T, d *deserted, l *Locator) {
		l.Started("n1#a", 0, 1)
		synctest.Wait()
		d.setBusy(true)
		for s := range 300 {
			l.Started("n1#a", s, uint64(s+2)<<18)
		}
		l.Ended("n1#a", 299, 301<<18)
		time.Sleep(time.Second)
		require.Len(t, d.says(), 1, "the first at once")
		d.setBusy(false)
		time.Sleep(time.Second)
		told := make(map[int]kind)
		said := d.says()
		for _, n := range said[1:] {
			for _, e := range n.entries {
				told[e.slot] = n.kind
			}
		}
		require.Len(t, told, 300)
		require.Equal(t, newsRuns, told[298])
		require.Equal(t, newsEnded, told[299])
		require.Less(t, len(said), 6)
	})
}

// An answer that does not fit says where the rest begins.
func TestLocator_AnswersInParts(t *testing.T) {
	in(t, 1000, func(t *testing.T, _ *deserted, l *Locator) {
		for s := range 1000 {
			l.Started("n1#a", s, math.MaxInt64-uint64(s*s))
		}
		next, all := 0, 0
		for {
			a := l.ownRuns(&news{kind: newsWhere, next: next})
			require.LessOrEqual(t, len(a.encode()), downing.MaxTalk)
			require.Equal(t, next, a.entries[0].slot)
			all += len(a.entries)
			if next = a.next; next == 0 {
				break
			}
		}
		require.Equal(t, 1000, all)
		some := news{kind: newsWhere, entries: []entry{{slot: 5}, {slot: 999}}}
		require.Len(t, l.ownRuns(&some).entries, 2)
	})
}

// Where nobody wants to know, it is asked seldom: many members miss the same. A caller who waits makes it
// quicker.
func TestLocator_AsksSoonForThoseWhoWait(t *testing.T) {
	in(t, 2, func(t *testing.T, d *deserted, l *Locator) {
		l.heard("n2#b", news{kind: newsRuns, entries: []entry{{0, 1}}})
		time.Sleep(10 * time.Minute) // slot 1 runs nowhere
		seldom, _ := d.asks()
		require.Less(t, len(seldom), 40)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := l.Slot(1).Wait(ctx, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		asks, last := d.asks()
		require.GreaterOrEqual(t, len(asks), len(seldom)+3)
		require.Equal(t, []entry{{slot: 1}}, last.entries)
	})
}

func FuzzDecodeNews(f *testing.F) {
	some := news{kind: newsRuns, next: 9, entries: []entry{{0, 7}, {3, 5}}, endpoint: "http://10.0.0.1:8080"}
	f.Add(some.encode())
	where := news{kind: newsWhere}
	f.Add(where.encode())
	f.Add([]byte{byte(newsRuns), 0, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := decodeNews(b)
		if err != nil {
			require.ErrorIs(t, err, errNews)
			return
		}
		require.Equal(t, b, n.encode())
	})
}

func TestDecodeNews_RefusesWhatNobodyWrites(t *testing.T) {
	for _, b := range [][]byte{
		nil, {0, 0, 0}, {9, 0, 0}, {byte(newsRuns)}, {byte(newsRuns), 0, 1}, {byte(newsRuns), 0, 1, 0, 1},
		append([]byte{byte(newsRuns), 0, 0}, strings.Repeat("x", MaxEndpoint+1)...),
		{byte(newsEnded), 0, 1, 0xff, 0xff, 0x7f, 2}, {byte(newsEnded), 0x80, 0, 0},
	} {
		_, err := decodeNews(b)
		require.ErrorIs(t, err, errNews, "%v", b)
	}
}
