package kubernetes

import (
	"fmt"
	"math"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serf-sbr/serf-sbr/lease"
)

// native is the codec of coordination.k8s.io/v1.
type native struct{}

func (native) empty() object { return &coordv1.Lease{} }

func (native) mark(object) string { return "" }

func (native) encode(r lease.Record, _ string) (draft, error) {
	value, err := encode(r)
	if err != nil {
		return draft{}, err
	}
	spec := toSpec(r)
	return draft{annotation: value, spec: map[string]any{
		"holderIdentity":       spec.HolderIdentity,
		"leaseDurationSeconds": orNil(spec.LeaseDurationSeconds),
		"acquireTime":          orNil(spec.AcquireTime),
		"renewTime":            orNil(spec.RenewTime),
		"leaseTransitions":     spec.LeaseTransitions,
	}}, nil
}

func (native) decode(o object) (lease.Record, error) {
	l, ok := o.(*coordv1.Lease)
	if !ok {
		return lease.Record{}, fmt.Errorf("it is a %T", o)
	}
	return fromLease(l)
}

// orNil keeps a nil pointer from becoming something that is not nil.
func orNil[T any](p *T) any {
	if p == nil {
		return nil
	}
	return p
}

// toSpec always names the holder, even as "": in a merge patch an absent field would stay as it is. So would
// all others, hence the draft lists them itself.
func toSpec(r lease.Record) coordv1.LeaseSpec {
	transitions := int32(min(r.Token, math.MaxInt32))
	spec := coordv1.LeaseSpec{HolderIdentity: &r.Holder, LeaseTransitions: &transitions}
	if r.TTL > 0 {
		// Rounded up: its readers, people with kubectl included, must not take the holder for gone too early.
		seconds := int32(min((r.TTL+time.Second-1)/time.Second, math.MaxInt32))
		if r.TTL > math.MaxInt64-time.Second {
			seconds = math.MaxInt32
		}
		spec.LeaseDurationSeconds = &seconds
	}
	spec.AcquireTime, spec.RenewTime = microTime(r.Acquired), microTime(r.Renewed)
	return spec
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: writable(t)}
}

// readable is a time of any writer. After the end of time, as of an edit by hand, no heartbeat can be later: it is
// no time.
func readable(t *metav1.MicroTime) time.Time {
	if t == nil || !t.Before(&metav1.MicroTime{Time: latest}) {
		return time.Time{}
	}
	return t.UTC()
}

// fromLease reads a stored object, of any writer.
func fromLease(l *coordv1.Lease) (lease.Record, error) {
	r := lease.Record{Holder: deref(l.Spec.HolderIdentity),
		TTL: time.Duration(max(0, deref(l.Spec.LeaseDurationSeconds))) * time.Second}
	r.Acquired, r.Renewed = readable(l.Spec.AcquireTime), readable(l.Spec.RenewTime)
	floor := uint64(max(0, deref(l.Spec.LeaseTransitions)))
	value, ours := l.Annotations[Annotation]
	if !ours {
		r.Token = floor
		return r, nil
	}
	p, _, err := decode(value)
	if err != nil {
		return lease.Record{}, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	r.Token, r.Verdict, r.Moved = max(p.Token, floor), p.Verdict, p.Moved
	if p.Holder == r.Holder {
		// Else the holder was changed by other means, and the nonce would tell its author a lie.
		r.Nonce, r.TTL = p.Nonce, p.TTL
	}
	return r, nil
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
