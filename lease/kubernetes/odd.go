package kubernetes

import (
	"log/slog"
	"sync/atomic"
)

// oddities logs what an operator should know of a custom resource, once in a row and not with every read.
type oddities struct{ last atomic.Pointer[string] }

// note looks at a stored object. Native ones have nothing odd: nobody else is expected there.
func (n *oddities) note(s *Store, o object) {
	l, ok := o.(*customLease)
	if !ok {
		return
	}
	text := l.oddity()
	if before := n.last.Swap(&text); text == "" || before != nil && *before == text {
		return
	}
	s.log.Warn(text, slog.String("lease", s.String()), slog.String("owner", string(l.Spec.Owner)), slog.Int64("time", int64(l.Spec.Time)))
}

// oddity is empty for a lease as it should be.
func (l *customLease) oddity() string {
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
