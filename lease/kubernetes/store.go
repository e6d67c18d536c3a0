package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record in one Lease object. It is safe for concurrent use.
type Store struct {
	api    API
	client *client
	log    *slog.Logger
	odd    anomalyLog
	uid    atomic.Value // of the lease as it was seen last, a types.UID
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
	_ lease.Limiter    = (*Store)(nil)
	_ lease.Announcer  = (*Store)(nil)
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

// NewForConfig is New for a program that has its own client-go configuration. Of cfg it uses everything but
// Kubeconfig and Context; an empty namespace means "default". restConfig's rate limit is not used and its
// timeout is replaced by cfg's.
func NewForConfig(restConfig *rest.Config, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := newClient(restConfig, cfg.API.dialect(), cmp.Or(cfg.Namespace, defaultNamespace), cfg.Name,
		cfg.RequestTimeout)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: client configuration: %w", err)
	}
	return &Store{api: cfg.api(), client: c, log: cfg.logger()}, nil
}

// Close drops idle connections. Requests and watches under way go on.
func (s *Store) Close() error {
	s.client.close()
	return nil
}

// API returns the kind of object that keeps the lease.
func (s *Store) API() API { return s.api }

// LastAnswer is when the API server last answered a request of this store, those beside a watch included; the
// zero time if it never did.
func (s *Store) LastAnswer() time.Time {
	if at := s.client.answered.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// String returns "namespace/name".
func (s *Store) String() string { return s.client.namespace + "/" + s.client.name }

// Location implements lease.Located: the URL of the object.
func (s *Store) Location() string { return s.client.url() }

// Read implements lease.Store: one GET.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	l, err := s.client.get(ctx)
	if s.isAbsent(err) {
		return lease.Snapshot{}, nil
	}
	if err != nil {
		return lease.Snapshot{}, s.fail("read", err)
	}
	snapshot, err := s.snapshot(l)
	if err != nil {
		return lease.Snapshot{}, refusal{err} // the answer cannot be decoded: asking again at once is futile
	}
	return snapshot, nil
}

// Write implements lease.Store: one merge patch, or one PUT (a POST for a custom resource) if prev is empty.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	d, err := s.client.dialect.encode(r, markOf(prev))
	if err != nil {
		return "", fmt.Errorf("lease %s: %w: %w", s, lease.ErrRefused, err)
	}
	stored, err := s.write(ctx, d, prev, false)
	if err != nil {
		return "", s.failWrite(prev == "", err)
	}
	snapshot, err := s.snapshot(stored)
	if err != nil {
		return "", err
	}
	if got := snapshot.Record; stored.GetAnnotations()[Annotation] != d.annotation || got.Holder != r.Holder ||
		got.Nonce != r.Nonce {
		return "", fmt.Errorf("lease %s: the server stored something else than was written (an admission webhook?)",
			s)
	}
	return snapshot.Version, nil
}

func (s *Store) write(ctx context.Context, d draft, prev lease.Version, dryRun bool) (object, error) {
	if prev == "" {
		body, err := s.client.whole(d)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", lease.ErrRefused, err)
		}
		return s.client.create(ctx, body, dryRun)
	}
	uid, version, ok := splitVersion(prev)
	if !ok {
		return nil, fmt.Errorf("%w: %q is not a version of this store", lease.ErrRefused, prev)
	}
	body, err := mergePatch(d, uid, version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lease.ErrRefused, err)
	}
	return s.client.patch(ctx, body, dryRun)
}

// whole is the object that creates the lease.
func (c *client) whole(d draft) ([]byte, error) {
	metadata := map[string]any{"name": c.name, "namespace": c.namespace,
		"annotations": map[string]string{Annotation: d.annotation}}
	if !c.dialect.posts {
		metadata["resourceVersion"] = createVersion
	}
	spec := maps.Clone(d.spec)
	maps.DeleteFunc(spec, func(_ string, v any) bool { return v == nil })
	return json.Marshal(map[string]any{
		"apiVersion": c.dialect.version.String(), "kind": kindName, "metadata": metadata, "spec": spec,
	})
}

// mergePatch makes the write conditional by two fields of its own body. Without the uid it would also take
// place on a lease that was deleted and created again. Fields of the draft that are nil become null, that is
// deleted; fields of others are not mentioned, and stay.
func mergePatch(d draft, uid types.UID, version string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             uid,
			"resourceVersion": version,
			"annotations":     map[string]string{Annotation: d.annotation},
		},
		"spec": d.spec,
	})
}

func (s *Store) snapshot(o object) (lease.Snapshot, error) {
	s.odd.note(s, o)
	s.uid.Store(o.GetUID())
	r, err := s.client.dialect.decode(o)
	if err != nil {
		return lease.Snapshot{},
			fmt.Errorf("lease %s is not readable: %w (to start afresh: kubectl -n %s annotate %s %s %s-)",
				s, err, s.client.namespace, s.client.dialect.plain, s.client.name, Annotation)
	}
	return lease.Snapshot{Record: r, Version: s.version(o)}, nil
}

// version is "uid/resourceVersion", followed by "/" and the codec's mark if it has one.
func (s *Store) version(o object) lease.Version {
	v := string(o.GetUID()) + "/" + o.GetResourceVersion()
	if mark := s.client.dialect.mark(o); mark != "" {
		v += "/" + mark
	}
	return lease.Version(v)
}

func splitVersion(v lease.Version) (uid types.UID, version string, ok bool) {
	before, after, ok := strings.Cut(string(v), "/")
	after, _, _ = strings.Cut(after, "/")
	return types.UID(before), after, ok && before != "" && after != ""
}

func markOf(v lease.Version) string {
	parts := strings.SplitN(string(v), "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// isAbsent is true only when the API server itself says so: a 404 made by a load balancer must not pass for a
// lease that is free.
func (s *Store) isAbsent(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Code == http.StatusNotFound && status.Details != nil &&
		status.Details.Name == s.client.name &&
		status.Details.Kind == resource && status.Details.Group == s.client.dialect.version.Group
}

// Identity implements lease.Identified: the uid of the lease's namespace. No two clusters, and no two
// namespaces of one, have the same, it stays when the lease is deleted, and a Role in that namespace can give
// the right to read it. It is the same in a cluster that was made from another one's backup.
func (s *Store) Identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(quiet(ctx), s.client.timeout)
	defer cancel()
	result := s.client.rest.Get().AbsPath("/api/v1/namespaces", s.client.namespace).MaxRetries(0).Do(ctx)
	var namespace struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := result.Error() // Raw's says less
	if err == nil {
		answer, _ := result.Raw()
		err = json.Unmarshal(answer, &namespace)
	}
	if err == nil && namespace.Metadata.UID == "" {
		err = errors.New("the answer is no stored namespace: it has no uid")
	}
	if err != nil {
		return "", fmt.Errorf("lease %s: which store it is: %w%s", s, err, s.roleAdvice(err, "get", "namespaces"))
	}
	return "kubernetes:" + namespace.Metadata.UID, nil
}

// roleAdvice is advice about what a Role allows beside the lease.
func (s *Store) roleAdvice(err error, verb, resource string) string {
	if !isForbidden(err) {
		return s.advice(err)
	}
	return fmt.Sprintf(" (a Role in namespace %s must allow %s on resource %s: sbr manifests prints it)",
		s.client.namespace, verb, resource)
}
