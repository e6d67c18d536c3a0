package singleton

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Location is where a singleton runs.
type Location struct {
	// ID is the member's incarnation, Name its name. Empty: nobody runs it, as far as is known.
	ID   sbr.ID
	Name string
	// Endpoint is what Config.Endpoint says there.
	Endpoint string
	// Token is the run's.
	Token uint64
}

// Known reports whether the singleton is known to run somewhere.
func (l Location) Known() bool { return l.ID != "" }

// Locator knows where a singleton runs: its Manager tells everybody when it starts and stops, and is asked where nobody has heard. It works on any member,
// whether it may run the singleton or not. All methods are safe for concurrent use.
//
// What it says may be old: a message may be lost, or late. It never goes back to an older run.
type Locator struct {
	name    string
	cluster Cluster
	log     *slog.Logger
	inbox   *inbox.Inbox
	ctx     context.Context
	cancel  context.CancelFunc
	over    chan struct{}
	asks    sync.WaitGroup

	// Owned by the loop.
	newest  uint64 // token of the newest run heard of
	backoff *backoff.ExponentialBackOff
	askAt   time.Time // zero: it is known, or a question is open

	mu      sync.Mutex
	at      Location
	changed chan struct{}
}

const (
	// whereTimeout is how long an answer to "where" may take.
	whereTimeout = 2 * time.Second
	// whereAtMost bounds the pause between two such questions while nobody answers.
	whereAtMost = 30 * time.Second
)

// NewLocator returns the locator of the singleton called name. Close it after use; there may be one for each singleton on a member. Errors: those of
// downing.Provider's Serve.
func NewLocator(c Cluster, name string, log *slog.Logger) (*Locator, error) {
	if log == nil {
		log = slog.Default()
	}
	l := &Locator{name: name, cluster: c, log: log, inbox: inbox.New(), over: make(chan struct{}), changed: make(chan struct{})}
	l.backoff = backoff.NewExponentialBackOff()
	l.backoff.InitialInterval, l.backoff.MaxInterval, l.backoff.RandomizationFactor = time.Second, whereAtMost, 0
	stopServing, err := c.Serve(locatorTopic(name), l.asked)
	if err != nil {
		return nil, fmt.Errorf("singleton %s: %w", name, err)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	stopFollowing := c.Follow(func() { l.inbox.Post(func() {}) })
	l.askAt = time.Now()
	go func() {
		defer close(l.over)
		defer l.asks.Wait()
		defer l.inbox.Close()
		defer stopServing()
		defer stopFollowing()
		l.loop()
	}()
	return l, nil
}

// Close ends the locator and waits for it. Location stays as it is.
func (l *Locator) Close() {
	l.cancel()
	<-l.over
}

// Location is where the singleton runs, as far as is known. It never blocks.
func (l *Locator) Location() Location {
	at, _ := l.read()
	return at
}

func (l *Locator) read() (Location, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, l.changed
}

// Changes tells where the singleton runs, now and after each change, until ctx ends; then the channel is closed. Who reads slowly gets the newest only.
func (l *Locator) Changes(ctx context.Context) <-chan Location {
	changes := make(chan Location, 1)
	go func() {
		defer close(changes)
		for {
			at, changed := l.read()
			replace(changes, at)
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-l.over:
				return
			}
		}
	}()
	return changes
}

// Wait returns where the singleton runs as soon as that is known, and differs from what the caller has tried in vain (its token, zero: none). The error is
// ctx's, or says that the locator was closed.
func (l *Locator) Wait(ctx context.Context, tried uint64) (Location, error) {
	for {
		at, changed := l.read()
		if at.Known() && at.Token != tried {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Location{}, fmt.Errorf("singleton %s: nobody is known to run it: %w", l.name, context.Cause(ctx))
		case <-l.over:
			return Location{}, fmt.Errorf("singleton %s: the locator was closed", l.name)
		}
	}
}

// Refresh asks anew, for a caller that was told of a place where the singleton no longer answers.
func (l *Locator) Refresh() {
	l.inbox.Post(func() {
		l.backoff.Reset()
		l.askAt = time.Now()
	})
}

func (l *Locator) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if l.askAt.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(l.askAt))
		}
		select {
		case <-l.ctx.Done():
			return
		case <-l.inbox.Wake():
		case <-timer.C:
		}
		for _, f := range l.inbox.Take() {
			f()
		}
		l.look()
		if !l.askAt.IsZero() && !time.Now().Before(l.askAt) {
			l.ask()
		}
	}
}

// look drops a location whose member is gone.
func (l *Locator) look() {
	at, _ := l.read()
	if !at.Known() {
		return
	}
	p := l.cluster.Peers()
	if q := p.Find(at.ID); q == nil || q.Status == sbr.Down {
		l.set(Location{})
	}
}

func (l *Locator) set(at Location) {
	l.mu.Lock()
	if l.at == at {
		l.mu.Unlock()
		return
	}
	l.at = at
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	l.backoff.Reset()
	l.askAt = time.Time{}
	if !at.Known() {
		l.askAt = time.Now().Add(l.backoff.NextBackOff())
	}
}

// ask asks everybody; only who runs the singleton answers.
func (l *Locator) ask() {
	l.askAt = time.Now().Add(l.backoff.NextBackOff())
	l.asks.Go(func() {
		answers, err := l.cluster.Ask(locatorTopic(l.name), "", whereabouts{what: newsWhere}.encode(), whereTimeout)
		if err != nil {
			l.log.Debug("sbr: a locator could not ask", "singleton", l.name, "error", err)
			return
		}
		for {
			select {
			case a, open := <-answers:
				if !open {
					return
				}
				if w, err := decodeNews(a.Payload); err == nil && !a.Unserved {
					l.inbox.Post(func() { l.heard(a.From, w) })
				}
			case <-l.ctx.Done():
				return
			}
		}
	})
}

// asked takes in what another member tells or asks.
func (l *Locator) asked(q downing.Question) {
	w, err := decodeNews(q.Payload)
	if err != nil {
		l.log.Debug("sbr: news was not understood", "singleton", l.name, "from", downing.NameOf(q.From), "error", err)
		return
	}
	if w.what != newsWhere {
		l.inbox.Post(func() { l.heard(q.From, w) })
		return
	}
	at := l.Location()
	if p := l.cluster.Peers(); at.ID == p.Self && at.Known() {
		if err := q.Answer(whereabouts{what: newsRuns, token: at.Token, endpoint: at.Endpoint}.encode()); err != nil {
			l.log.Debug("sbr: a locator could not answer", "singleton", l.name, "error", err)
		}
	}
}

// heard takes in news of a run. Those of an older run than the newest are old. Loop only.
func (l *Locator) heard(from sbr.ID, w whereabouts) {
	at, _ := l.read()
	switch {
	case w.token < l.newest:
	case w.what == newsRuns:
		l.newest = w.token
		l.askAt = time.Time{}
		l.set(Location{ID: from, Name: downing.NameOf(from), Endpoint: w.endpoint, Token: w.token})
	case w.what == newsEnded && at.ID == from && at.Token == w.token:
		l.set(Location{})
	}
}

// told takes in news of this member's own manager, and passes it on to everybody.
func (l *Locator) told(self sbr.ID, w whereabouts) {
	l.inbox.Post(func() {
		l.heard(self, w)
		l.asks.Go(func() {
			if _, err := l.cluster.Ask(locatorTopic(l.name), "", w.encode(), whereTimeout); err != nil {
				l.log.Debug("sbr: news was not told", "singleton", l.name, "error", err)
			}
		})
	})
}
