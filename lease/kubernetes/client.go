package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/serf-sbr/serf-sbr/lease"
)

const (
	resource     = "leases"
	kindName     = "Lease"
	fieldManager = "serf-sbr"
	// createVersion is a resourceVersion that no object has: etcd starts at 1 and the first write makes it 2.
	// A PUT with it creates the lease if it does not exist and else conflicts cleanly. With no version at all
	// the losers would see "invalid".
	createVersion = "1"
)

// client makes the requests: each one exactly once, with an end on both sides. It knows nothing of records.
type client struct {
	dialect         dialect
	rest            *rest.RESTClient
	params          runtime.ParameterCodec
	close           func()
	namespace, name string
	timeout         time.Duration
	answered        atomic.Int64 // when the server last answered about the lease, in Unix nanoseconds
}

// newClient uses only the REST client and the one API group it needs: the typed clients drag in all of them
// (twice the binary and twice the memory), and cannot turn off their retries.
func newClient(cfg *rest.Config, d dialect, namespace, name string, timeout time.Duration) (*client, error) {
	scheme := d.scheme()
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &d.version
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	// Custom resources know no other.
	cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	cfg.QPS, cfg.RateLimiter = -1, nil // ten quick requests must not make the eleventh wait
	cfg.WarningHandler, cfg.WarningHandlerWithContext = rest.NoWarnings{}, nil
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	httpClient, release, err := sharedHTTPClient(cfg, timeout)
	if err != nil {
		return nil, err
	}
	restClient, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		release()
		return nil, err
	}
	return &client{
		dialect:   d,
		rest:      restClient,
		params:    runtime.NewParameterCodec(scheme),
		close:     release,
		namespace: namespace,
		name:      name,
		timeout:   timeout,
	}, nil
}

func (c *client) url() string {
	return c.rest.Get().Namespace(c.namespace).Resource(resource).Name(c.name).URL().String()
}

func (c *client) get(ctx context.Context) (object, error) {
	// No resourceVersion: "0" would be answered from a cache, even while etcd stands still.
	return c.do(ctx, c.rest.Get().Namespace(c.namespace).Resource(resource).Name(c.name), false)
}

func (c *client) patch(ctx context.Context, body []byte, dryRun bool) (object, error) {
	req := c.rest.Patch(types.MergePatchType).Namespace(c.namespace).Resource(resource).Name(c.name)
	return c.do(ctx, req.VersionedParams(&metav1.PatchOptions{FieldManager: fieldManager, DryRun: dry(dryRun)},
		c.params).Body(body), dryRun)
}

// create sends a whole object to the path that names it. A native lease is made by PUT, because the right to
// POST cannot be limited to one name. A custom resource is made by POST, as a PUT never does that; there the
// server accepts the path with the name, and judges the right by it.
func (c *client) create(ctx context.Context, body []byte, dryRun bool) (object, error) {
	var options runtime.Object = &metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dry(dryRun)}
	req := c.rest.Put()
	if c.dialect.posts {
		options, req = &metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry(dryRun)}, c.rest.Post()
	}
	req = req.Namespace(c.namespace).Resource(resource).Name(c.name).SetHeader("Content-Type",
		runtime.ContentTypeJSON)
	return c.do(ctx, req.VersionedParams(options, c.params).Body(body), dryRun)
}

func dry(run bool) []string {
	if !run {
		return nil
	}
	return []string{metav1.DryRunAll}
}

func (c *client) do(ctx context.Context, req *rest.Request, dryRun bool) (object, error) {
	ctx, cancel := context.WithTimeout(quiet(ctx), c.timeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		// The server gives up first, so that the client learns of it and no work goes on behind its back.
		if left := time.Until(deadline) * 9 / 10; left > time.Millisecond {
			req = req.Param("timeout", left.Round(time.Millisecond).String())
		}
	}
	out := c.dialect.empty()
	err := req.MaxRetries(0).Do(ctx).Into(out)
	if err == nil || apierrors.IsNotFound(err) { // that there is none yet is an answer
		c.answered.Store(time.Now().UnixNano())
	}
	if err != nil {
		return nil, err
	}
	// What was not stored has no version.
	if out.GetUID() == "" || out.GetResourceVersion() == "" && !dryRun {
		return nil, errors.New("the answer is not a stored lease: it has no uid or no resourceVersion")
	}
	return out, nil
}

var errOpenTimeout = errors.New("the watch did not open in time")

// watch opens a stream of changes that begins with the present state. The end of the stream is left to ctx;
// only its opening is bounded.
func (c *client) watch(ctx context.Context, openTimeout time.Duration) (watch.Interface, error) {
	ctx, cancel := context.WithCancelCause(quiet(ctx))
	timer := time.AfterFunc(openTimeout, func() { cancel(errOpenTimeout) })
	opts := &metav1.ListOptions{
		FieldSelector: "metadata.name=" + c.name, // without it "watch" with resourceNames is forbidden
		Watch:         true,
	}
	req := c.rest.Get().Namespace(c.namespace).Resource(resource).VersionedParams(opts, c.params)
	stream, err := req.MaxRetries(0).Watch(ctx)
	failed := notOpened(err, timer.Stop(), context.Cause(ctx), openTimeout)
	if failed == nil {
		return &stoppable{stream, cancel}, nil
	}
	cancel(nil)
	if err == nil {
		stream.Stop()
	}
	return nil, failed
}

// notOpened is why a stream cannot be used: its own error, or that it came too late. The timer may have fired
// although its function, which gives ctx the cause, has not run yet.
func notOpened(err error, inTime bool, cause error, openTimeout time.Duration) error {
	if err == nil && inTime {
		return nil
	}
	if err == nil || errors.Is(cause, errOpenTimeout) {
		return fmt.Errorf("%w (%s)", errOpenTimeout, openTimeout)
	}
	return err
}

// stoppable also ends the request: stopping a stream alone leaves its reader behind until the server sends
// something.
type stoppable struct {
	watch.Interface
	cancel context.CancelCauseFunc
}

func (s *stoppable) Stop() {
	s.cancel(nil)
	s.Interface.Stop()
}

// quiet keeps client-go from logging to standard error what it returns as an error anyway.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

// openTimeout bounds the opening of a stream: without a watch a client can still read.
func (c *client) openTimeout() time.Duration { return max(3*time.Second, c.timeout) }

// Watch implements lease.Watcher with one stream that begins with the present state, so that no version of
// the past, which a restored backup makes one of the future, is ever asked for. The server ends a healthy one
// after some minutes. A state that cannot be decoded is logged and skipped.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	stream, err := s.client.watch(ctx, s.client.openTimeout())
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case isForbidden(err):
		return fmt.Errorf("lease %s: watch: %w: %w%s", s, lease.ErrRefused, err, s.advice(err))
	case err != nil:
		return s.fail("watch", err)
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-stream.ResultChan():
			if !open {
				return ctx.Err() // nil: the server ended it
			}
			if err := s.tell(ctx, event, fn); err != nil {
				return s.fail("watch", err)
			}
		}
	}
}

func (s *Store) tell(ctx context.Context, event watch.Event, fn func(lease.Snapshot)) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	o, ok := event.Object.(object)
	switch {
	case !ok:
		return fmt.Errorf("the watch brought a %T", event.Object)
	case event.Type == watch.Bookmark:
	case event.Type == watch.Deleted:
		fn(lease.Snapshot{})
	default:
		snapshot, err := s.snapshot(o)
		if err != nil {
			s.log.ErrorContext(ctx, "skipped a state of the lease", slog.Any("error", err))
			return nil
		}
		fn(snapshot)
	}
	return nil
}

func isForbidden(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Code == http.StatusForbidden
}
