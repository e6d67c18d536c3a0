package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Preflight tries what the store will do: it reads the lease, writes it in a dry run, and opens a watch. It
// changes nothing and holds nothing. The error lists every problem on a line of its own, each with what to do
// about it.
//
// It tries the right to create only if there is no lease: with a lease created beforehand that right may be
// missing.
func (s *Store) Preflight(ctx context.Context) error {
	l, err := s.client.get(ctx)
	absent, forbidden := s.isAbsent(err), isForbidden(err)
	if err != nil && !absent && !forbidden {
		return refused(s.fail("read", err)) // the others would fail for the same reason
	}
	var problems []error
	present := lease.Snapshot{Version: probeVersion}
	switch {
	case forbidden:
		problems = append(problems, s.fail("read", err))
	case !absent:
		present, err = s.inspect(l)
		problems = append(problems, err)
	}
	_, err = s.tryWrite(ctx, updateAction, present)
	problems = append(problems, err)
	if absent || forbidden {
		_, err = s.tryWrite(ctx, s.createAction(), lease.Snapshot{})
		problems = append(problems, err)
	}
	return refused(append(problems, s.tryWatch(ctx))...)
}

// DryRun tries the write of the next verdict without making it: one request, and another one where there is
// no lease yet. Its error wraps lease.ErrRefused when the credentials or the rights are gone; any other error
// says nothing about them.
func (s *Store) DryRun(ctx context.Context) error {
	absent, err := s.tryWrite(ctx, updateAction, lease.Snapshot{Version: probeVersion})
	if absent {
		_, err = s.tryWrite(ctx, s.createAction(), lease.Snapshot{})
	}
	return refused(err)
}

// refused joins problems. Those of credentials and rights are lease.ErrRefused as well: an operator has to
// mend them.
func refused(problems ...error) error {
	for i, err := range problems {
		if status, ok := apiStatus(err); ok && (status.Code == http.StatusUnauthorized ||
			status.Code == http.StatusForbidden) {
			problems[i] = refusal{err}
		}
	}
	return errors.Join(problems...)
}

const updateAction = "update (PATCH)"

func (s *Store) createAction() string {
	if s.client.dialect.posts {
		return "create (POST)"
	}
	return "create (PUT)"
}

func (s *Store) inspect(l object) (lease.Snapshot, error) {
	snapshot, err := s.snapshot(l)
	if err != nil {
		return lease.Snapshot{Version: s.version(l)}, err
	}
	// A custom resource is there to be shared with others.
	if _, ours := l.GetAnnotations()[Annotation]; !ours && snapshot.Record.Holder != "" && !s.api.Custom() {
		err = fmt.Errorf("lease %s is held by %q but has no annotation %s: if another program uses it choose another lease-name, else clear its holder",
			s, snapshot.Record.Holder, Annotation)
	}
	return snapshot, err
}

// probeVersion is no version of any lease: a patch on it conflicts, after it was authorised.
const probeVersion = lease.Version("00000000-0000-0000-0000-000000000000/" + createVersion)

// tryWrite is a write in a dry run; absent says that it found no lease to change.
func (s *Store) tryWrite(ctx context.Context, action string, present lease.Snapshot) (
	absent bool, err error) {
	d, err := s.client.dialect.encode(present.Record, markOf(present.Version))
	if err == nil {
		_, err = s.write(ctx, d, present.Version, true)
	}
	// A conflict means that the request was authorised and found another state, or no lease.
	if err == nil || errors.Is(classify(present.Version == "", err), lease.ErrConflict) {
		return s.isAbsent(err), nil
	}
	return false, s.fail(action+" in a dry run", err)
}

func (s *Store) tryWatch(ctx context.Context) error {
	stream, err := s.client.watch(ctx, s.client.openTimeout())
	if err != nil {
		return s.fail("watch", err)
	}
	defer stream.Stop()
	select {
	case _, open := <-stream.ResultChan():
		if !open { // client-go hides an opening that broke off in a stream that has ended
			return s.fail("watch", errors.New("the watch ended"))
		}
	default:
	}
	return nil
}
