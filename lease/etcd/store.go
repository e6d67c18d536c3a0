package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record under one key. It is safe for concurrent use.
type Store struct {
	client *clientv3.Client
	key    string
	end    func() // ends the use of a client that is the Factory's; nil: it is the caller's
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
	_ lease.Located    = (*Store)(nil)
	_ lease.DryRunner  = (*Store)(nil)
)

// New returns the store of a key. It sends nothing, and does not close the client.
func New(client *clientv3.Client, key string) (*Store, error) {
	switch {
	case client == nil:
		return nil, errors.New("etcd: a client is required")
	case key == "":
		return nil, errors.New("etcd: a key is required, for example /serf-sbr/payments-sbr")
	}
	return &Store{client: client, key: key}, nil
}

// String returns the key.
func (s *Store) String() string { return s.key }

// Location implements lease.Located: the endpoints of the client, and the key.
func (s *Store) Location() string {
	servers := s.client.Endpoints()
	for i, e := range servers {
		if u, err := url.Parse(e); err == nil && u.Host != "" {
			servers[i] = u.Host // by whatever scheme, and as whom
		}
	}
	slices.Sort(servers)
	at := cmp.Or(strings.Join(slices.Compact(servers), ","), fmt.Sprintf("client %p", s.client))
	return fmt.Sprintf("etcd %s, key %s", at, s.key)
}

// Identity implements lease.Identified: the id of the etcd cluster, which a restored one has not, and the
// key.
func (s *Store) Identity(ctx context.Context) (string, error) {
	got, err := s.client.Get(ctx, s.key, clientv3.WithCountOnly())
	if err != nil {
		return "", s.wrap(err)
	}
	return fmt.Sprintf("etcd cluster %016x, key %s", got.Header.ClusterId, s.key), nil
}

// Read implements lease.Store. An error that wraps lease.ErrRefused needs a person: a right, a password, or a
// value that is no record.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	snap, _, err := s.read(ctx)
	return snap, err
}

// read also returns the revision of the cluster at which the record was as it is shown.
func (s *Store) read(ctx context.Context) (lease.Snapshot, int64, error) {
	got, err := s.client.Get(ctx, s.key)
	if err != nil {
		return lease.Snapshot{}, 0, s.wrap(err)
	}
	if len(got.Kvs) == 0 {
		return lease.Snapshot{}, got.Header.Revision, nil
	}
	snap, err := s.snapshot(got.Kvs[0])
	return snap, got.Header.Revision, err
}

func (s *Store) snapshot(kv *mvccpb.KeyValue) (lease.Snapshot, error) {
	r, err := lease.UnmarshalRecord(kv.Value)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("etcd: %s: %w: its value is not the record of a lease: %w", s.key,
			lease.ErrRefused, err)
	}
	return lease.Snapshot{Record: r, Version: lease.Version(kv.Value)}, nil
}

// unchanged is the condition under which the record still is at prev: each write has a name of its own in the
// value (lease.Document), so no version comes back, neither after a deletion nor after a restore, when
// revisions repeat.
func (s *Store) unchanged(prev lease.Version) clientv3.Cmp {
	if prev == "" {
		return clientv3.Compare(clientv3.CreateRevision(s.key), "=", 0)
	}
	return clientv3.Compare(clientv3.Value(s.key), "=", string(prev))
}

// timeless ends as its context does, but does not say when: the server would be told so with each request,
// and do no more by it than a client that is gone needs.
type timeless struct{ context.Context }

// Deadline implements context.Context.
func (timeless) Deadline() (end time.Time, ok bool) { return end, false }

// maxRecord is the size of the largest record, in bytes: a write carries two, the one that it replaces and the
// next, and a request has at most 1.5 MiB. A larger one could be written once, and never replaced.
const maxRecord = 700 << 10

// Write implements lease.Store.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	value, err := lease.MarshalRecord(r)
	if err == nil && len(value) > maxRecord {
		err = fmt.Errorf("%w: %d bytes, at most %d: list fewer members in the verdict", lease.ErrTooLarge,
			len(value), maxRecord)
	}
	if err != nil {
		return "", fmt.Errorf("etcd: %s: %w: %w", s.key, lease.ErrRefused, err)
	}
	done, err := s.client.Txn(timeless{ctx}).If(s.unchanged(prev)).Then(clientv3.OpPut(s.key,
		string(value))).Commit()
	switch {
	case err != nil:
		return "", s.wrap(err)
	case !done.Succeeded:
		return "", lease.ErrConflict
	}
	return lease.Version(value), nil
}

// DryRun implements lease.DryRunner: a transaction whose condition never holds needs the right to put, and
// the space.
func (s *Store) DryRun(ctx context.Context) error {
	never := clientv3.Compare(clientv3.CreateRevision(s.key), "<", 0)
	if _, err := s.client.Txn(timeless{ctx}).If(never).Then(clientv3.OpPut(s.key, "")).Commit(); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Watch implements lease.Watcher.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx)) // a member that is cut off says so
	defer cancel()
	now, revision, err := s.read(ctx)
	if err != nil {
		return err
	}
	fn(now)
	for changes := range s.client.Watch(ctx, s.key, clientv3.WithRev(revision+1)) {
		if err := changes.Err(); err != nil {
			return s.wrap(err)
		}
		if len(changes.Events) == 0 {
			continue
		}
		var last lease.Snapshot
		if e := changes.Events[len(changes.Events)-1]; e.Type != clientv3.EventTypeDelete {
			if last, err = s.snapshot(e.Kv); err != nil {
				return err
			}
		}
		fn(last)
	}
	return ctx.Err()
}

// refusals are answers after which certainly nothing was written, and which do not change by asking again.
var refusals = []error{
	rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken,
	rpctypes.ErrNoSpace,
}

// wrap names the key, and says what is certain.
func (s *Store) wrap(err error) error {
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return fmt.Errorf("etcd: %s: %w: %w", s.key, lease.ErrRefused, err)
		}
	}
	if errors.Is(err, rpctypes.ErrRequestTooLarge) { // the server has a limit of its own (--max-request-bytes)
		return fmt.Errorf("etcd: %s: %w: %w: %w", s.key, lease.ErrRefused, lease.ErrTooLarge, err)
	}
	return fmt.Errorf("etcd: %s: %w", s.key, err)
}
