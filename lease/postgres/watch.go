package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/internal/shared"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Watch implements lease.Watcher. All watches over one pool share one connection beside it, which listens.
// A notification is a hint: the row is read through the pool.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	open := func() (*listener, error) { return listen(s.pool), nil }
	l, end, _ := listeners.Use(s.pool, open, (*listener).stop)
	defer end()
	hint := make(chan struct{}, 1)
	l.hints.Store(hint, s.name)
	defer l.hints.Delete(hint)
	for listening := l.listening; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.Done():
			return s.wrap(context.Cause(l))
		case <-listening: // from now on nothing is missed
			listening = nil
		case <-hint:
		}
		bounded, cancel := bound(ctx)
		now, err := s.Read(bounded)
		cancel()
		if err != nil {
			return err
		}
		fn(now)
	}
}

// bound ends a request that has no other bound.
func bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, lease.DefaultSettings().OperationTimeout)
}

// listeners has the one of each pool that is watched.
var listeners shared.Values[*pgxpool.Pool, *listener]

// listener is one connection that listens for all watches over one pool: a context that ends with it, by the
// reason.
type listener struct {
	context.Context
	end       context.CancelCauseFunc
	running   sync.WaitGroup
	listening chan struct{} // closed once it does
	hints     sync.Map      // the channel of each watch, and the name that it waits for
}

func listen(pool *pgxpool.Pool) *listener {
	l := &listener{listening: make(chan struct{})}
	l.Context, l.end = context.WithCancelCause(context.Background())
	l.running.Go(func() {
		err := l.hear(pool.Config())
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

// pingEvery is how often a silent connection is asked whether it still works.
const pingEvery = 10 * time.Second

// hear connects, and passes on notifications until that fails.
func (l *listener) hear(config *pgxpool.Config) error {
	if before := config.BeforeConnect; before != nil {
		if err := before(l, config.ConnConfig); err != nil {
			return err
		}
	}
	c, err := pgx.ConnectConfig(l, config.ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(l)) }()
	ask := func(statement string) error {
		bounded, cancel := bound(l)
		defer cancel()
		_, err := c.Exec(bounded, statement)
		return err
	}
	if err := ask("LISTEN " + channel); err != nil {
		return err
	}
	close(l.listening)
	for err == nil {
		quiet, cancel := context.WithTimeout(l, pingEvery)
		word, silence := c.WaitForNotification(quiet)
		cancel()
		switch {
		case silence == nil:
			l.tell(word.Payload)
		case c.IsClosed():
			err = silence
		default:
			err = ask("-- ping")
		}
	}
	return fmt.Errorf("listening: %w", err)
}

// tell gives a hint to all whose name begins so.
func (l *listener) tell(name string) {
	for hint, of := range l.hints.Range {
		if strings.HasPrefix(of.(string), name) {
			select {
			case hint.(chan struct{}) <- struct{}{}:
			default: // it has one
			}
		}
	}
}
