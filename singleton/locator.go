package singleton

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
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
	at      drive.Told[Location]
	newest  uint64        // token of the newest run heard of; changed together with at
	anew    chan struct{} // somebody wants it to be asked now
	doubted atomic.Bool   // the place that is known did not answer somebody; nothing was heard of it since
	ctx     context.Context
	close   func()
	work    sync.WaitGroup
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
	l := &Locator{name: name, cluster: c, log: cmp.Or(log, slog.Default()), anew: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	l.ctx = ctx
	stopServing, err := c.Serve(locatorTopic(name), l.asked)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("singleton %s: %w", name, err)
	}
	stopFollowing := c.Follow(l.look)
	l.work.Go(l.seek)
	l.close = sync.OnceFunc(func() {
		stopFollowing()
		stopServing()
		cancel()
		l.work.Wait()
	})
	return l, nil
}

// Close ends the locator and waits for it. Location stays as it is.
func (l *Locator) Close() { l.close() }

// Location is where the singleton runs, as far as is known. It never blocks.
func (l *Locator) Location() Location {
	at, _ := l.at.Get()
	return at
}

// Changes tells where the singleton runs, now and after each change, until ctx ends; then the channel is closed. Who reads slowly gets the newest only.
func (l *Locator) Changes(ctx context.Context) <-chan Location {
	return l.at.Changes(ctx, l.ctx.Done())
}

// Wait returns where the singleton runs as soon as that is known, and differs from what the caller has tried in vain (its token, zero: none). The error is
// ctx's, or says that the locator was closed.
func (l *Locator) Wait(ctx context.Context, tried uint64) (Location, error) {
	for {
		at, changed := l.at.Get()
		if at.Known() && at.Token != tried {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Location{}, fmt.Errorf("singleton %s: nobody is known to run it: %w", l.name, context.Cause(ctx))
		case <-l.ctx.Done():
			return Location{}, fmt.Errorf("singleton %s: the locator was closed", l.name)
		}
	}
}

// Refresh asks anew, for a caller that was told of a place where the singleton no longer answers.
func (l *Locator) Refresh() {
	l.doubted.Store(true)
	select {
	case l.anew <- struct{}{}:
	default: // it is about to be asked
	}
}

// seek asks everybody, again and again, while the place is not known or doubted; only who runs the singleton answers.
func (l *Locator) seek() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.RandomizationFactor = time.Second, whereAtMost, 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at, changed := l.at.Get()
		if at.Known() && !l.doubted.Load() {
			timer.Stop()
		}
		select {
		case <-changed:
			pause.Reset()
			timer.Reset(pause.NextBackOff())
			continue
		case <-l.anew:
			pause.Reset()
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		timer.Reset(pause.NextBackOff())
		l.tell(whereabouts{what: newsWhere})
	}
}

// look drops a location whose member is gone.
func (l *Locator) look() {
	l.at.Update(func(at Location) (Location, bool) {
		if at.Known() {
			p := l.cluster.Peers()
			if q := p.Find(at.ID); q == nil || q.Status == sbr.Down {
				return Location{}, true
			}
		}
		return at, false
	})
}

// tell tells everybody something, and takes in what is answered. It is called before Close.
func (l *Locator) tell(w whereabouts) {
	l.work.Go(func() {
		answers, err := l.cluster.Ask(locatorTopic(l.name), "", w.encode(), whereTimeout)
		if err != nil {
			l.log.Debug("sbr: a locator could not ask", "singleton", l.name, "error", err)
			return
		}
		l.listen(answers)
	})
}

func (l *Locator) listen(answers <-chan downing.Answer) {
	for {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			if w, err := decodeNews(a.Payload); err == nil && !a.Unserved {
				l.heard(a.From, w)
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// asked takes in what another member tells or asks.
func (l *Locator) asked(q downing.Question) {
	w, err := decodeNews(q.Payload)
	if err != nil {
		l.log.Debug("sbr: news was not understood", "singleton", l.name, "from", downing.NameOf(q.From), "error", err)
		return
	}
	if w.what != newsWhere {
		l.heard(q.From, w)
		return
	}
	at := l.Location()
	if p := l.cluster.Peers(); at.ID == p.Self && at.Known() {
		if err := q.Answer(whereabouts{what: newsRuns, token: at.Token, endpoint: at.Endpoint}.encode()); err != nil {
			l.log.Debug("sbr: a locator could not answer", "singleton", l.name, "error", err)
		}
	}
}

// heard takes in news of a run. Those of an older run than the newest are old.
func (l *Locator) heard(from sbr.ID, w whereabouts) {
	l.at.Update(func(at Location) (Location, bool) {
		switch {
		case w.token < l.newest:
		case w.what == newsRuns:
			l.newest = w.token
			l.doubted.Store(false)
			now := Location{ID: from, Name: downing.NameOf(from), Endpoint: w.endpoint, Token: w.token}
			return now, now != at
		case w.what == newsEnded && at.ID == from && at.Token == w.token:
			return Location{}, true
		}
		return at, false
	})
}

// told takes in news of this member's own manager, and passes it on to everybody.
func (l *Locator) told(self sbr.ID, w whereabouts) {
	l.heard(self, w)
	l.tell(w)
}

// news is what a manager tells locators, and what these ask.
type news byte

const (
	// newsRuns: the sender runs the singleton, under Token, reachable at Endpoint.
	newsRuns news = iota + 1
	// newsEnded: the run under Token is over or must end.
	newsEnded
	// newsWhere: whoever runs the singleton is asked to answer newsRuns.
	newsWhere
)

var errNews = errors.New("singleton: not valid news")

type whereabouts struct {
	what     news
	token    uint64
	endpoint string
}

func (w whereabouts) encode() []byte {
	b := binary.AppendUvarint([]byte{byte(w.what)}, w.token)
	return append(b, w.endpoint...)
}

func decodeNews(b []byte) (w whereabouts, err error) {
	if len(b) == 0 || news(b[0]) < newsRuns || news(b[0]) > newsWhere {
		return w, fmt.Errorf("%w: unknown kind", errNews)
	}
	token, n := binary.Uvarint(b[1:])
	switch {
	case n <= 0:
		return w, fmt.Errorf("%w: cut off", errNews)
	case token > math.MaxInt64:
		return w, fmt.Errorf("%w: the token is too large", errNews)
	case len(b)-1-n > MaxEndpoint:
		return w, fmt.Errorf("%w: the endpoint has %d bytes", errNews, len(b)-1-n)
	}
	return whereabouts{what: news(b[0]), token: token, endpoint: string(b[1+n:])}, nil
}
