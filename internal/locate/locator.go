package locate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Location is where something runs. The zero Location: nowhere, as far as is known.
type Location struct {
	// ID is the member's incarnation, Name its name.
	ID   sbr.ID
	Name string
	// Endpoint is where that member says its runs are reached, Token the run's.
	Endpoint string
	Token    uint64
}

// Known reports whether it is known to run somewhere.
func (l Location) Known() bool { return l.ID != "" }

// Options are what a Locator needs.
type Options struct {
	Cluster drive.Cluster
	// Topic is where locators talk.
	Topic string
	// What runs, for errors and the log: "singleton backup".
	What string
	// Slots is how many there are of it.
	Slots int
	// Endpoint is where the runs of this member are reached, at most MaxEndpoint bytes.
	Endpoint string
	Log      *slog.Logger
	// Changed, if set, is called after each change. It must not block.
	Changed func()
}

// Locator knows where the runs of n slots are. All methods are safe for concurrent use.
type Locator struct {
	o     Options
	at    drive.Told[[]Location] // a list is replaced, never changed
	anew  chan struct{}          // somebody wants it to be asked now
	news  chan struct{}          // there is something to tell
	ctx   context.Context
	close func()
	work  sync.WaitGroup

	mu      sync.Mutex     // taken before that of at
	newest  []uint64       // by slot: the token of the newest run heard of
	doubted []bool         // by slot: the location was of no use to somebody, and nothing was heard since
	untold  map[int]change // by slot: what is not told yet of this member's own runs
}

// change is the start of a run, or its end.
type change struct {
	token uint64
	runs  bool
}

const (
	// answerTimeout is how long the answer to a request may take.
	answerTimeout = 2 * time.Second
	// askAtMost bounds the pause between two requests while something is not known.
	askAtMost = 30 * time.Second
	// gather is the least pause between two messages: what comes meanwhile goes into one.
	gather = 50 * time.Millisecond
)

// New returns a locator that takes part. Close it after use. Errors: those of downing.Provider's Serve.
func New(o Options) (*Locator, error) {
	l := &Locator{
		o: o, anew: make(chan struct{}, 1), news: make(chan struct{}, 1), newest: make([]uint64, o.Slots),
		doubted: make([]bool, o.Slots), untold: make(map[int]change),
	}
	l.at.Update(func([]Location) ([]Location, bool) { return make([]Location, o.Slots), true })
	ctx, cancel := context.WithCancel(context.Background())
	l.ctx = ctx
	stopServing, err := o.Cluster.Serve(o.Topic, l.asked)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", o.What, err)
	}
	stopFollowing := o.Cluster.Follow(l.look)
	l.work.Go(l.seek)
	l.work.Go(l.spread)
	l.close = sync.OnceFunc(func() {
		stopFollowing()
		stopServing()
		cancel()
		l.work.Wait()
	})
	return l, nil
}

// Close tells what is not told yet, ends the locator, and waits for it. The locations stay as they are.
func (l *Locator) Close() { l.close() }

// All are the locations, by slot, and a channel that is closed with the next change. Do not change the list.
func (l *Locator) All() (at []Location, changed <-chan struct{}) { return l.at.Get() }

// Slot is one of a Locator's slots.
type Slot struct {
	l    *Locator
	slot int
}

// Slot returns a slot, from 0.
func (l *Locator) Slot(slot int) Slot { return Slot{l, slot} }

// At is where it runs. It never blocks.
func (s Slot) At() Location {
	at, _ := s.l.at.Get()
	return at[s.slot]
}

// Changes tells all locations, now and after each change, as of makes something of them, until ctx ends or the
// locator is closed; then the channel is closed. Who reads slowly gets the newest only.
func Changes[T any](ctx context.Context, l *Locator, of func([]Location) T) <-chan T {
	return drive.Changes(ctx, &l.at, l.ctx.Done(), of)
}

// Wait returns where it runs as soon as that is known, and differs from what the caller has tried in vain (its token,
// zero: none). The error wraps the cause of ctx, or says that the locator was closed.
func (s Slot) Wait(ctx context.Context, tried uint64) (Location, error) {
	for {
		list, changed := s.l.at.Get()
		if at := list[s.slot]; at.Known() && at.Token != tried {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Location{}, fmt.Errorf("nobody is known to run it: %w", context.Cause(ctx))
		case <-s.l.ctx.Done():
			return Location{}, errors.New("the locator was closed")
		}
	}
}

// Refresh asks anew, for a caller to whom the location was of no use.
func (s Slot) Refresh() {
	s.l.mu.Lock()
	s.l.doubted[s.slot] = true
	s.l.mu.Unlock()
	wake(s.l.anew)
}

// Started tells everybody that a run has started on this member, self.
func (l *Locator) Started(self sbr.ID, slot int, token uint64) {
	l.own(self, slot, change{token, true})
}

// Ended tells everybody that a run on this member is over, or must end.
func (l *Locator) Ended(self sbr.ID, slot int, token uint64) {
	l.own(self, slot, change{token, false})
}

func (l *Locator) own(self sbr.ID, slot int, c change) {
	n := news{kind: newsEnded, entries: []entry{{slot, c.token}}}
	if c.runs {
		n.kind, n.endpoint = newsRuns, l.o.Endpoint
	}
	if !l.heard(self, n) {
		return // it was told before, or there is a newer run
	}
	l.mu.Lock()
	l.untold[slot] = c
	l.mu.Unlock()
	wake(l.news)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// spread tells everybody what is new of this member's runs.
func (l *Locator) spread() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-l.news:
		case <-l.ctx.Done():
			l.tellNews()
			return
		}
		l.tellNews()
		pause.Reset(gather)
		select {
		case <-pause.C:
		case <-l.ctx.Done():
		}
	}
}

// tellNews tells what is not told yet. What cannot be told now is kept.
func (l *Locator) tellNews() {
	l.mu.Lock()
	untold := l.untold
	l.untold = make(map[int]change)
	l.mu.Unlock()
	runs, ended := news{kind: newsRuns, endpoint: l.o.Endpoint}, news{kind: newsEnded}
	for s, c := range untold {
		n := &ended
		if c.runs {
			n = &runs
		}
		n.entries = append(n.entries, entry{s, c.token})
	}
	for _, n := range []news{ended, runs} {
		slices.SortFunc(n.entries, entry.compare)
		for len(n.entries) > 0 {
			part := n
			part.entries = n.entries[:n.fit()]
			n.entries = n.entries[len(part.entries):]
			if err := l.tell("", part); errors.Is(err, downing.ErrTalkBusy) {
				l.tellLater(part, untold)
			}
		}
	}
}

// tellLater keeps what could not be told, unless there is something newer.
func (l *Locator) tellLater(n news, untold map[int]change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range n.entries {
		if _, newer := l.untold[e.slot]; !newer {
			l.untold[e.slot] = untold[e.slot]
		}
	}
	wake(l.news)
}

// tell sends one message, to everybody if to is empty, and takes in what is answered. It is called by what Close waits
// for.
func (l *Locator) tell(to sbr.ID, n news) error {
	answers, err := l.o.Cluster.Ask(l.o.Topic, to, n.encode(), answerTimeout)
	if err != nil {
		l.o.Log.Debug("sbr: a locator could not ask", "what", l.o.What, "error", err)
		return err
	}
	if n.kind == newsWhere {
		l.work.Go(func() { l.listen(answers) })
	}
	return nil
}

func (l *Locator) listen(answers <-chan downing.Answer) {
	for {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			n, err := decodeNews(a.Payload)
			if err != nil || a.Unserved {
				continue
			}
			l.heard(a.From, n)
			if n.kind == newsRuns && n.next > 0 {
				_ = l.tell(a.From, news{kind: newsWhere, next: n.next}) // what is not known is asked for again anyway
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// seek asks everybody, again and again, while a location is not known or doubted.
func (l *Locator) seek() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.RandomizationFactor = time.Second, askAtMost, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	for {
		missing, changed := l.missing()
		if !missing {
			timer.Stop()
		}
		select {
		case <-changed:
			pause.Reset()
			timer.Reset(pause.NextBackOff())
			continue
		case <-l.anew:
			pause.Reset()
			if left := gather - time.Since(last); left > 0 {
				timer.Reset(left)
				continue
			}
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		last = time.Now()
		timer.Reset(pause.NextBackOff())
		_ = l.tell("", news{kind: newsWhere}) // it is asked again
	}
}

// missing reports whether a location is not known, or doubted.
func (l *Locator) missing() (missing bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, changed := l.at.Get()
	for s := range at {
		missing = missing || !at[s].Known() || l.doubted[s]
	}
	return missing, changed
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
	if changed && l.o.Changed != nil {
		l.o.Changed()
	}
	return changed
}

// asked takes in what another member tells or asks.
func (l *Locator) asked(q downing.Question) {
	n, err := decodeNews(q.Payload)
	if err != nil {
		l.o.Log.Debug("sbr: a location was not understood", "what", l.o.What, "from", downing.NameOf(q.From), "error", err)
		return
	}
	if n.kind != newsWhere {
		l.heard(q.From, n)
		return
	}
	if a := l.ownRuns(n.next); len(a.entries) > 0 {
		if err := q.Answer(a.encode()); err != nil {
			l.o.Log.Debug("sbr: a locator could not answer", "what", l.o.What, "error", err)
		}
	}
}

// ownRuns lists what this member runs, from a slot on, as much as one message carries.
func (l *Locator) ownRuns(from int) news {
	a := news{kind: newsRuns, endpoint: l.o.Endpoint}
	list, _ := l.at.Get()
	self := l.o.Cluster.Peers().Self
	for s := min(from, len(list)); s < len(list); s++ {
		if list[s].Known() && list[s].ID == self {
			a.entries = append(a.entries, entry{s, list[s].Token})
		}
	}
	if n := a.fit(); n < len(a.entries) {
		a.next = a.entries[n].slot
		a.entries = a.entries[:n]
	}
	return a
}

// heard takes in news of runs, and reports whether they changed anything. Those of an older run than the newest are old.
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
