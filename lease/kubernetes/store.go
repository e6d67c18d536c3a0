package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record in one Lease object. It is safe for concurrent use.
type Store struct {
	client *client
	log    *slog.Logger
	pace   pace
}

var (
	_ lease.Store   = (*Store)(nil)
	_ lease.Watcher = (*Store)(nil)
)

// New returns the store that cfg describes. It makes no request: Preflight does.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	restConfig, namespace, err := cfg.load()
	if err != nil {
		return nil, err
	}
	cfg.Namespace = namespace
	return NewForConfig(restConfig, cfg)
}

// NewForConfig is New for a program that has its own client-go configuration. Of cfg it uses everything but Kubeconfig and Context;
// an empty namespace means "default". restConfig's rate limit is not used and its timeout is replaced by cfg's.
func NewForConfig(restConfig *rest.Config, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := newClient(restConfig, firstOf(cfg.Namespace, defaultNamespace), cfg.Name, cfg.RequestTimeout)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: client configuration: %w", err)
	}
	return &Store{client: c, log: cfg.logger(), pace: defaultPace(cfg.PollInterval)}, nil
}

// Close drops idle connections. Requests and watches under way go on.
func (s *Store) Close() error {
	s.client.close()
	return nil
}

// String returns "namespace/name".
func (s *Store) String() string { return s.client.namespace + "/" + s.client.name }

// Read implements lease.Store: one GET.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	l, err := s.client.get(ctx)
	if s.isAbsent(err) {
		return lease.Snapshot{}, nil
	}
	if err != nil {
		return lease.Snapshot{}, s.fail("read", err)
	}
	return s.snapshot(l)
}

// Write implements lease.Store: one merge patch, or one PUT if prev is empty.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Snapshot, error) {
	value, err := encode(r)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("lease %s: %w: %w", s, lease.ErrRefused, err)
	}
	stored, err := s.write(ctx, r, value, prev, false)
	if err != nil {
		return lease.Snapshot{}, s.failWrite(prev == "", err)
	}
	if stored.Annotations[Annotation] != value || deref(stored.Spec.HolderIdentity) != r.Holder {
		return lease.Snapshot{}, fmt.Errorf("lease %s: the server stored something else than was written (an admission webhook?)", s)
	}
	return s.snapshot(stored)
}

func (s *Store) write(ctx context.Context, r lease.Record, value string, prev lease.Version, dryRun bool) (*coordv1.Lease, error) {
	if prev == "" {
		l := &coordv1.Lease{Spec: toSpec(r)}
		l.Annotations = map[string]string{Annotation: value}
		return s.client.create(ctx, l, dryRun)
	}
	uid, version, ok := splitVersion(prev)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a version of this store", lease.ErrRefused, prev)
	}
	body, err := mergePatch(toSpec(r), value, uid, version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lease.ErrRefused, err)
	}
	return s.client.patch(ctx, body, dryRun)
}

// mergePatch makes the write conditional by two fields of its own body. Without the uid it would also take place on a lease that was
// deleted and created again. Fields that are nil in the spec become null, that is deleted; fields of others are not mentioned, and stay.
func mergePatch(spec coordv1.LeaseSpec, value string, uid types.UID, version string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             uid,
			"resourceVersion": version,
			"annotations":     map[string]string{Annotation: value},
		},
		"spec": map[string]any{
			"holderIdentity":       spec.HolderIdentity,
			"leaseDurationSeconds": spec.LeaseDurationSeconds,
			"acquireTime":          spec.AcquireTime,
			"renewTime":            spec.RenewTime,
			"leaseTransitions":     spec.LeaseTransitions,
		},
	})
}

func (s *Store) snapshot(l *coordv1.Lease) (lease.Snapshot, error) {
	r, err := fromLease(l)
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("lease %s is not readable: %w (to start afresh: kubectl -n %s annotate lease %s %s-)",
			s, err, s.client.namespace, s.client.name, Annotation)
	}
	return lease.Snapshot{Record: r, Version: joinVersion(l)}, nil
}

func joinVersion(l *coordv1.Lease) lease.Version {
	return lease.Version(string(l.UID) + "/" + l.ResourceVersion)
}

func splitVersion(v lease.Version) (uid types.UID, version string, ok bool) {
	before, after, ok := strings.Cut(string(v), "/")
	return types.UID(before), after, ok && before != "" && after != ""
}

// isAbsent is true only when the API server itself says so: a 404 made by a load balancer must not pass for a lease that is free.
func (s *Store) isAbsent(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Code == 404 && status.Details != nil && status.Details.Name == s.client.name && status.Details.Kind == resource
}

// pace are the bounds and pauses of a watch; tests shorten them.
type pace struct {
	open, retryMin, retryMax, poll time.Duration
}

func defaultPace(poll time.Duration) pace {
	return pace{open: 3 * time.Second, retryMin: 100 * time.Millisecond, retryMax: 2 * time.Second, poll: poll}
}
