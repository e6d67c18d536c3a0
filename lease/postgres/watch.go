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

	"github.com/serf-sbr/serf-sbr/lease"
)

// Watch implements lease.Watcher. All watches over one pool share one connection beside it, which listens.
// What it hears is a hint: the row is read through the pool.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	ear := listen(s.pool, s.name)
	defer ear.close()
	var last *lease.Version
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ear.hint: // the first one once it listens: nothing is missed
		case <-ear.of.ended:
			return s.wrap(ear.of.err)
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
var listeners = struct {
	sync.Mutex
	of map[*pgxpool.Pool]*listener
}{of: map[*pgxpool.Pool]*listener{}}

// listener is one connection that listens for all watches over one pool. listeners.Mutex guards ears and ready.
type listener struct {
	ears  map[*ear]struct{}
	ready bool
	stop  context.CancelFunc
	ended chan struct{} // closed after err was set
	err   error
}

// ear is what one watch hears.
type ear struct {
	name string
	pool *pgxpool.Pool
	of   *listener
	hint chan struct{}
}

// listen joins the listener of the pool, or starts it.
func listen(pool *pgxpool.Pool, name string) *ear {
	listeners.Lock()
	defer listeners.Unlock()
	l := listeners.of[pool]
	if l == nil {
		ctx, stop := context.WithCancel(context.Background())
		l = &listener{ears: map[*ear]struct{}{}, stop: stop, ended: make(chan struct{})}
		listeners.of[pool] = l
		go l.run(ctx, pool)
	}
	e := &ear{name: name, pool: pool, of: l, hint: make(chan struct{}, 1)}
	l.ears[e] = struct{}{}
	if l.ready {
		e.hint <- struct{}{}
	}
	return e
}

// close ends the listener with its last ear.
func (e *ear) close() {
	listeners.Lock()
	delete(e.of.ears, e)
	last := len(e.of.ears) == 0
	if last && listeners.of[e.pool] == e.of {
		delete(listeners.of, e.pool)
	}
	listeners.Unlock()
	if last {
		e.of.stop()
		<-e.of.ended
	}
}

// tell gives a hint to all whose name begins so.
func (l *listener) tell(name string) {
	listeners.Lock()
	defer listeners.Unlock()
	l.ready = true
	for e := range l.ears {
		if strings.HasPrefix(e.name, name) {
			select {
			case e.hint <- struct{}{}:
			default: // it has one
			}
		}
	}
}

func (l *listener) run(ctx context.Context, pool *pgxpool.Pool) {
	l.err = l.hear(ctx, pool.Config().ConnConfig, patience(pool))
	listeners.Lock()
	if listeners.of[pool] == l {
		delete(listeners.of, pool) // the next watch starts another one
	}
	listeners.Unlock()
	close(l.ended)
}

// hear connects, and passes on what it hears until that fails.
func (l *listener) hear(ctx context.Context, config *pgx.ConnConfig, patience time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := pgx.ConnectConfig(bounded, config)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err := c.Exec(bounded, "LISTEN "+channel); err != nil {
		return err
	}
	l.tell("") // all read once
	for {
		word, err := next(ctx, c, patience)
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
