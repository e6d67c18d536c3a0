package kubernetes

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/serf-sbr/serf-sbr/lease"
)

// openTimeout bounds the opening of a stream: whoever cannot watch can still read.
func (c *client) openTimeout() time.Duration { return max(3*time.Second, c.timeout) }

// Watch implements lease.Watcher with one stream that begins with the present state, so that no version of the past, which a restored
// backup makes one of the future, is ever asked for. The server ends a healthy one after some minutes. A state that cannot be decoded
// is logged and skipped.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	stream, err := s.client.watch(ctx, s.client.openTimeout())
	switch {
	case ctx.Err() != nil:
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
				return nil
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
