package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/internal/shared"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Watch implements lease.Watcher. All watches over one pool share one connection beside it, which listens.
// What it hears is a hint: the row is read through the pool.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	open := func() (*listener, error) { return listen(s.pool), nil }
	l, end, _ := listeners.Use(s.pool, open, (*listener).stop)
	defer end()
	hint := l.join(s.name)
	defer l.leave(hint)
	var last *lease.Version
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-hint: // the first one once it listens: nothing is missed
		case <-l.Done():
			return s.wrap(context.Cause(l))
		}
		now, err := s.readWithin(ctx)
		if err != nil {
			return err
		}
		if last == nil || *last != now.Version {
			last = &now.Version
			fn(now)
		}
	}
}

func (s *Store) readWithin(ctx context.Context) (lease.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, patience(s.pool))
	defer cancel()
	return s.Read(ctx)
}

// patience bounds what nobody else bounds.
func patience(pool *pgxpool.Pool) time.Duration {
	if t := pool.Config().ConnConfig.ConnectTimeout; t > 0 {
		return t
	}
	return lease.DefaultSettings().OperationTimeout
}

// listeners has the one of each pool that is watched.
var listeners shared.Values[*pgxpool.Pool, *listener]

// listener is one connection that listens for all watches over one pool: a context that ends with it, by the reason.
type listener struct {
	context.Context
	end     context.CancelCauseFunc
	running sync.WaitGroup

	mu    sync.Mutex
	hints map[chan struct{}]string // each watch's, with the name that it waits for
	ready bool
}

func listen(pool *pgxpool.Pool) *listener {
	l := &listener{hints: map[chan struct{}]string{}}
	l.Context, l.end = context.WithCancelCause(context.Background())
	l.running.Go(func() {
		err := l.hear(pool.Config().ConnConfig, patience(pool))
		if l.Err() == nil { // not stopped: the next watch starts another one
			listeners.Forget(pool)
		}
		l.end(err)
	})
	return l
}

func (l *listener) stop() {
	l.end(nil)
	l.running.Wait()
}

func (l *listener) join(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	hint := make(chan struct{}, 1)
	l.hints[hint] = name
	if l.ready {
		hint <- struct{}{}
	}
	return hint
}

func (l *listener) leave(hint chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.hints, hint)
}

// tell gives a hint to all whose name begins so.
func (l *listener) tell(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
	for hint, of := range l.hints {
		if strings.HasPrefix(of, name) {
			select {
			case hint <- struct{}{}:
			default: // it has one
			}
		}
	}
}

// hear connects, and passes on what it hears until that fails.
func (l *listener) hear(config *pgx.ConnConfig, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(l, patience)
	defer cancel()
	c, err := pgx.ConnectConfig(bounded, config)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(l)) }()
	if _, err := c.Exec(bounded, "LISTEN "+channel); err != nil {
		return err
	}
	l.tell("") // all read once
	for {
		word, err := next(l, c, patience)
		if err != nil {
			return fmt.Errorf("listening: %w", err)
		}
		l.tell(word.Payload)
	}
}

// pingEvery is how often a silent connection is asked whether it still works.
const pingEvery = 10 * time.Second

func next(ctx context.Context, c *pgx.Conn, patience time.Duration) (*pgconn.Notification, error) {
	for {
		quiet, cancel := context.WithTimeout(ctx, pingEvery)
		word, err := c.WaitForNotification(quiet)
		cancel()
		if word != nil || ctx.Err() != nil || c.IsClosed() {
			return word, err
		}
		bounded, cancel := context.WithTimeout(ctx, patience)
		err = c.Ping(bounded)
		cancel()
		if err != nil {
			return nil, err
		}
	}
}
