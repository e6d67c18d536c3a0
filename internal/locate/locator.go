package locate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Location is where a slot runs. The zero Location: not known to run.
type Location struct {
	// ID is the member's incarnation, Name its name.
	ID   sbr.ID
	Name string
	// Endpoint is where that member's runs are reached, Token the token of the run.
	Endpoint string
	Token    uint64
}

// Known reports whether the slot is known to run.
func (l Location) Known() bool { return l.ID != "" }

// Options are what a Locator needs.
type Options struct {
	Cluster drive.Cluster
	// Topic is the topic of the locators' messages.
	Topic string
	// What names what runs, for errors and the log: "singleton backup".
	What string
	// Slots is the number of slots.
	Slots int
	// Endpoint is where the runs of this member are reached, at most MaxEndpoint bytes.
	Endpoint string
	Log      *slog.Logger
}

// Locator knows where the runs of n slots are. All methods are safe for concurrent use.
type Locator struct {
	o     Options
	at    drive.Told[[]Location] // a list is replaced, never changed
	anew  chan struct{}          // a caller wants the members asked now
	news  chan struct{}          // there are changes to send
	ctx   context.Context
	close func()
	work  sync.WaitGroup

	mu      sync.Mutex     // taken before that of at
	newest  []uint64       // by slot: the token of the newest known run
	doubted []bool         // by slot: the location failed a caller, and no news came since
	untold  map[int]change // by slot: changes of this member's own runs that were not sent yet
}

// change is the start of a run, or its end.
type change struct {
	token uint64
	runs  bool
}

// New returns a locator that knows nothing yet. Close it after use.
func New(o Options) *Locator {
	l := &Locator{
		o: o, anew: make(chan struct{}, 1), news: make(chan struct{}, 1), newest: make([]uint64, o.Slots),
		doubted: make([]bool, o.Slots), untold: make(map[int]change),
	}
	l.at.Update(func([]Location) ([]Location, bool) { return make([]Location, o.Slots), true })
	l.ctx, l.close = context.WithCancel(context.Background())
	return l
}

// Start takes part. Errors: those of downing.Provider's Serve.
func (l *Locator) Start() error {
	stopServing, err := l.o.Cluster.Serve(l.o.Topic, l.asked)
	if err != nil {
		return fmt.Errorf("%s: %w", l.o.What, err)
	}
	stopFollowing, cancel := l.o.Cluster.Follow(l.look), l.close
	l.work.Go(l.seek)
	l.work.Go(l.spread)
	l.close = sync.OnceFunc(func() {
		stopFollowing()
		stopServing()
		cancel()
		l.work.Wait()
	})
	return nil
}

// Close sends the unsent changes, ends the locator, and waits for its end. The locations stay as they are.
func (l *Locator) Close() { l.close() }

// All are the locations, by slot. Do not change the list.
func (l *Locator) All() []Location {
	at, _ := l.at.Get()
	return at
}

// Heard reports whether a run of any slot was ever known.
func (l *Locator) Heard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Max(l.newest) > 0
}

// Slot is one of a Locator's slots.
type Slot struct {
	l    *Locator
	slot int
}

// Slot returns a slot, from 0.
func (l *Locator) Slot(slot int) Slot { return Slot{l, slot} }

// At is where the slot runs. It never blocks.
func (s Slot) At() Location {
	at, _ := s.l.at.Get()
	return at[s.slot]
}

// Changes sends what of makes of all locations, now and after each change, until ctx ends or the locator is
// closed; then the channel is closed. A slow reader gets the newest value only.
func Changes[T any](ctx context.Context, l *Locator, of func([]Location) T) <-chan T {
	return drive.Changes(ctx, &l.at, l.ctx.Done(), of)
}

// Wait returns where the slot runs, once a run is known whose token is not tried, the token of the run that
// the caller tried in vain (zero: none). Meanwhile it asks all members. The error wraps the cause of ctx, or
// says that the locator was closed.
func (s Slot) Wait(ctx context.Context, tried uint64) (Location, error) {
	pause := askFirst
	ask := time.NewTimer(pause)
	defer ask.Stop()
	for {
		list, changed := s.l.at.Get()
		if at := list[s.slot]; at.Known() && at.Token != tried {
			return at, nil
		}
		select {
		case <-changed:
		case <-ask.C:
			s.Refresh()
			pause = min(2*pause, askAtMost)
			ask.Reset(pause)
		case <-ctx.Done():
			return Location{}, fmt.Errorf("nobody is known to run it: %w", context.Cause(ctx))
		case <-s.l.ctx.Done():
			return Location{}, errors.New("the locator was closed")
		}
	}
}

// Refresh asks the members again, for a caller whose location failed.
func (s Slot) Refresh() {
	s.l.mu.Lock()
	s.l.doubted[s.slot] = true
	s.l.mu.Unlock()
	wake(s.l.anew)
}

// Started tells all members that a run has started on this member, self.
func (l *Locator) Started(self sbr.ID, slot int, token uint64) {
	l.own(self, slot, change{token, true})
}

// Ended tells all members that a run on this member is over, or must end.
func (l *Locator) Ended(self sbr.ID, slot int, token uint64) {
	l.own(self, slot, change{token, false})
}

func (l *Locator) own(self sbr.ID, slot int, c change) {
	n := news{kind: newsEnded, entries: []entry{{slot, c.token}}}
	if c.runs {
		n.kind, n.endpoint = newsRuns, l.o.Endpoint
	}
	if !l.heard(self, n) {
		return // it was sent before, or there is a newer run
	}
	l.mu.Lock()
	l.untold[slot] = c
	l.mu.Unlock()
	wake(l.news)
}

// look drops locations whose member is gone.
func (l *Locator) look() {
	peers := l.o.Cluster.Peers()
	l.update(func(s int, at Location) Location {
		if !at.Known() {
			return at
		}
		if p := peers.Find(at.ID); p == nil || p.Status == sbr.Down {
			return Location{}
		}
		return at
	})
}

// update replaces each location by what f makes of it, under l.mu, and reports whether one has changed.
func (l *Locator) update(f func(slot int, at Location) Location) (changed bool) {
	l.mu.Lock()
	l.at.Update(func(list []Location) ([]Location, bool) {
		for s, at := range list {
			next := f(s, at)
			if next == at {
				continue
			}
			if !changed {
				list, changed = slices.Clone(list), true
			}
			list[s] = next
		}
		return list, changed
	})
	l.mu.Unlock()
	return changed
}

// heard handles news of runs, and reports whether they changed anything. It ignores news of a run older than
// the newest.
func (l *Locator) heard(from sbr.ID, n news) (changed bool) {
	tokens := make(map[int]uint64, len(n.entries))
	for _, e := range n.entries {
		tokens[e.slot] = e.token
	}
	return l.update(func(s int, at Location) Location {
		token, told := tokens[s]
		switch {
		case !told || token < l.newest[s]:
		case n.kind == newsRuns:
			l.newest[s], l.doubted[s] = token, false
			return Location{ID: from, Name: downing.NameOf(from), Endpoint: n.endpoint, Token: token}
		case n.kind == newsEnded && at.ID == from && at.Token == token:
			return Location{}
		}
		return at
	})
}
