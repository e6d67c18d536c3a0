package file

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record in one file. It is safe for concurrent use, and holds nothing open between two calls.
type Store struct {
	path, dir string
	log       *slog.Logger
	system    system

	root  context.Context
	close context.CancelCauseFunc
	// writing and reading bound the goroutines that a disk which does not answer can hold up.
	writing, reading chan struct{}
	// waiting: the operation in the slot of writing waits for the lock.
	waiting atomic.Bool
	// tidied is when leftovers were last looked for. Guarded by writing.
	tidied time.Time
	doubt  sync.Once
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
)

// New returns the store that cfg describes. It does not touch the disk: Preflight does.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("file: %q has no working directory to start from: %w (set lease.file.path to an absolute path)", cfg.Path, err)
	}
	root, stop := context.WithCancelCause(context.Background())
	return &Store{
		path: path, dir: filepath.Dir(path), log: cfg.logger(), system: realSystem(),
		root: root, close: stop, writing: make(chan struct{}, 1), reading: make(chan struct{}, 8),
	}, nil
}

// Close ends all watches and requests with lease.ErrClosed. A write whose file is being replaced at this
// moment may still take place; it does not wait for that.
func (s *Store) Close() error {
	s.close(lease.ErrClosed)
	return nil
}

// String returns the absolute path of the record.
func (s *Store) String() string { return s.path }

// Location implements lease.Located: the path of the record, without symbolic links on the way.
func (s *Store) Location() string {
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return s.path
	}
	return filepath.Join(dir, filepath.Base(s.path)) // the record itself must not be a link
}

// Read implements lease.Store. It waits for no lock. A file that does not exist is an absent record; a
// directory that does not exist is an error, as is a file that is not a record (ErrBadRecord). The error
// wraps lease.ErrRefused where only a person can mend it.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	snap, err := await(ctx, s.reading, s.read)
	if err != nil {
		return lease.Snapshot{}, s.failRead(err)
	}
	return snap, nil
}

func (s *Store) read() (lease.Snapshot, error) {
	c, err := s.load()
	if err != nil {
		return lease.Snapshot{}, err
	}
	return c.snapshot()
}

// bound ends ctx with the store.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.root, func() { cancel(lease.ErrClosed) })
	if s.root.Err() != nil {
		cancel(lease.ErrClosed) // AfterFunc comes too late for what is called at once
	}
	return ctx, func() {
		unhook()
		cancel(context.Canceled)
	}
}

// grace is how long an operation may still answer after its context has ended: most do at once, and say why.
const grace = 20 * time.Millisecond

// unheard is the cause of a context that has ended before an operation answered.
type unheard struct{ error }

// Unwrap returns the cause.
func (u unheard) Unwrap() error { return u.error }

// await runs f and returns its result, or unheard if ctx ends first: no context reaches into a call to the
// kernel, and a disk can take its time. f then ends by itself, and gives its slot back.
func await[T any](ctx context.Context, slots chan struct{}, f func() (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, unheard{context.Cause(ctx)}
	}
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return none, unheard{context.Cause(ctx)}
	}
	type result struct {
		of  T
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-slots }()
		of, err := f()
		done <- result{of, err}
	}()
	select {
	case r := <-done:
		return r.of, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.of, r.err
	case <-time.After(grace):
		return none, unheard{context.Cause(ctx)}
	}
}

// bootID holds what no two running kernels have in common, and all containers of one machine share.
const bootID = "/proc/sys/kernel/random/boot_id"

var errNoBootID = errors.New("file: this system does not tell its machines apart, so the store cannot tell which one it is")

// Identity implements lease.Identified: the running kernel, the folder as that kernel knows it, and the name
// of the file. So containers that share a folder have one store, wherever each has mounted it.
func (s *Store) Identity(ctx context.Context) (string, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	return await(ctx, s.reading, s.identity)
}

func (s *Store) identity() (string, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoBootID, err)
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return "", fmt.Errorf("file: the folder of the record: %w", err)
	}
	defer func() { _ = dir.Close() }() // it was only looked at
	id, err := identify(dir)
	if err != nil {
		return "", fmt.Errorf("file: the folder of the record: %w", err)
	}
	return fmt.Sprintf("file:%s/%d/%d/%s", strings.TrimSpace(string(boot)), id.device, id.inode,
		filepath.Base(s.path)), nil
}
