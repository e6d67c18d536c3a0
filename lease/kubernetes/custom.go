package kubernetes

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serf-sbr/serf-sbr/lease"
)

// customLease is the Lease of akka.io/v1 and pekko.apache.org/v1, which are equal but for the group.
type customLease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              customSpec `json:"spec"`
}

// customSpec is all that the other parties know. Their write drops labels and annotations.
type customSpec struct {
	// Owner is empty or null when the lease is free.
	Owner anyText `json:"owner"`
	// Time is the owner's wall clock at its last sign of life, in milliseconds since 1970.
	Time anyNumber `json:"time"`
}

// DeepCopyObject implements runtime.Object.
func (l *customLease) DeepCopyObject() runtime.Object {
	c := &customLease{TypeMeta: l.TypeMeta, Spec: l.Spec}
	l.DeepCopyInto(&c.ObjectMeta)
	return c
}

// custom is the codec of the custom resources.
type custom struct{}

func (custom) empty() object { return &customLease{} }

// mark is the time of a state, in milliseconds: the next write must show another one.
func (custom) mark(o object) string {
	l, ok := o.(*customLease)
	if !ok {
		return ""
	}
	return strconv.FormatInt(int64(l.Spec.Time), 10)
}

// encode changes the spec with each write, be it only the time: the server counts the changes of the spec in
// metadata.generation, and that count must never fall behind the token (see decode).
func (custom) encode(r lease.Record, mark string) (draft, error) {
	at := millis(r.Renewed)
	if mark == strconv.FormatInt(at, 10) {
		at++ // never at the limit: millis stays far below
	}
	p, err := payloadOf(r)
	if err != nil {
		return draft{}, err
	}
	p.Time = &at
	value, err := p.pack()
	return draft{annotation: value, spec: map[string]any{"owner": r.Holder, "time": at}}, err
}

// decode believes the annotation only as far as it speaks of this very spec: the others do not know it. After
// one of them has written, the token goes on from metadata.generation. No writer can lower that, and it is at
// least the last token, because each write here raises the token by at most one and the generation by one.
func (custom) decode(o object) (lease.Record, error) {
	l, ok := o.(*customLease)
	if !ok {
		return lease.Record{}, fmt.Errorf("it is a %T", o)
	}
	owner, at, floor := string(l.Spec.Owner), int64(l.Spec.Time), uint64(max(0, l.Generation))
	foreign := lease.Record{Holder: owner, Token: floor, Renewed: fromMillis(at)}
	value, ours := l.Annotations[Annotation]
	if !ours {
		return foreign, nil
	}
	p, then, err := decode(value)
	if err != nil {
		return lease.Record{}, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	foreign.Verdict = p.Verdict
	if p.Holder != owner || then == nil || *then != at {
		foreign.Token = max(p.Token, floor)
		return foreign, nil
	}
	return p, nil
}

// Window implements lease.Limiter. Natively it is s.Window(): all parties judge by their own observation.
//
// Over a custom resource the other parties take over as soon as their wall clock shows more than the recorded
// time plus heartbeat-timeout less two heartbeat-intervals (96 s by default). A holder here stops earlier, as
// theirs do: by lease-operation-timeout, which a write may have been under way, and by a heartbeat-interval,
// which is how much the wall clocks may differ (79 s by default). It is an error if that leaves less than two
// heartbeat-intervals, or if heartbeat-timeout is infinite: the others know no such thing. All parties must
// be configured alike.
func (s *Store) Window(settings lease.Settings) (time.Duration, error) {
	if !s.api.Custom() {
		return settings.Window(), nil
	}
	timeout, interval := settings.HeartbeatTimeout, settings.Interval()
	if timeout == lease.Infinite {
		return 0, fmt.Errorf("lease %s: heartbeat-timeout is infinite: %s parties would take the lease over all the same; set a duration", s, s.api)
	}
	window := timeout - 3*interval - settings.OperationTimeout
	if window < 2*interval {
		return 0, fmt.Errorf("lease %s: heartbeat-timeout %v less 3 x heartbeat-interval %v and lease-operation-timeout %v leaves %v to trust a heartbeat"+
			" before %s parties may take over: it must be at least 2 x heartbeat-interval; raise heartbeat-timeout",
			s, timeout, interval, settings.OperationTimeout, window, s.api)
	}
	return window, nil
}

// anomalyLog says what an operator should know of a custom resource, once in a row and not with every read.
type anomalyLog struct{ last atomic.Pointer[string] }

// note looks at a stored object. Native ones have nothing odd: no foreign writer is expected there.
func (n *anomalyLog) note(s *Store, o object) {
	l, ok := o.(*customLease)
	if !ok {
		return
	}
	text := l.anomaly()
	if before := n.last.Swap(&text); text == "" || before != nil && *before == text {
		return
	}
	s.log.Warn(text, slog.String("lease", s.String()), slog.String("owner", string(l.Spec.Owner)),
		slog.Int64("time", int64(l.Spec.Time)))
}

// anomaly is empty for a lease as it should be.
func (l *customLease) anomaly() string {
	owner, at := string(l.Spec.Owner), int64(l.Spec.Time)
	_, ours := l.Annotations[Annotation]
	switch {
	case owner == "":
		return ""
	case at <= 0 || at >= latest.UnixMilli():
		return "the time of the lease's owner makes no sense; here the owner is alive as long as it changes, Akka and Pekko go by its value"
	case !ours:
		return "the lease is held by another program; its write has dropped the record: the token goes on from the object's generation, a verdict is lost"
	default:
		return ""
	}
}

// anyText is a JSON string. Anything else but null is a name too: a lease with a strange owner is not free.
type anyText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *anyText) UnmarshalJSON(raw []byte) error {
	var text *string
	if json.Unmarshal(raw, &text) != nil {
		*t = anyText(strings.ToValidUTF8(string(raw), "?"))
		return nil
	}
	*t = anyText(deref(text))
	return nil
}

// anyNumber is a whole number of 64 bits. What is larger is the largest, what is no number is zero: nothing
// depends on the value, only on its changes, and an object with a strange one must not lock all parties out.
type anyNumber int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *anyNumber) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = anyNumber(whole)
		return nil
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is out of range
	switch {
	case f >= math.MaxInt64:
		*n = math.MaxInt64
	case f <= math.MinInt64:
		*n = math.MinInt64
	case math.IsNaN(f):
		*n = 0
	default:
		*n = anyNumber(f)
	}
	return nil
}

// Times that JSON can write. Later ones need a fifth digit in the year; the margin leaves room to add to
// them.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC)
)

// fromMillis reads a time of any writer. Zero and below is no time, the far future is the end of time.
func fromMillis(at int64) time.Time {
	switch {
	case at <= 0:
		return time.Time{}
	case at >= latest.UnixMilli():
		return latest
	default:
		return time.UnixMilli(at).UTC()
	}
}

// millis is how the others write a time, 0 for none.
func millis(t time.Time) int64 {
	if t.Before(earliest) {
		return 0
	}
	return writable(t).UnixMilli()
}

// writable is t, or the last time that fits into a record: a time read from a poisoned record must not make
// the next write fail.
func writable(t time.Time) time.Time {
	if t.After(latest) {
		return latest
	}
	return t.UTC()
}
