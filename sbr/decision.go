package sbr

import (
	"fmt"
	"slices"
	"time"
)

// Kind says what a decision does; the names are those of the reference resolver.
type Kind uint8

// The kinds of decision. The zero value does nothing.
const (
	None Kind = iota
	DownUnreachable
	DownReachable
	DownAll
	DownIndirectlyConnected
	ReverseDownIndirectlyConnected
	AcquireLeaseAndDownUnreachable
	AcquireLeaseAndDownIndirectlyConnected
)

var kindNames = [...]string{
	"none", "down-unreachable", "down-reachable", "down-all", "down-indirectly-connected",
	"reverse-down-indirectly-connected", "acquire-lease-and-down-unreachable", "acquire-lease-and-down-indirectly-connected",
}

// String returns the name that logs and JSON use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind reads a name written by Kind.String; ok is false for any other text.
func ParseKind(name string) (k Kind, ok bool) {
	i := slices.Index(kindNames[:], name)
	return Kind(max(i, 0)), i >= 0
}

// NeedsLease reports whether the decision waits for the lease.
func (k Kind) NeedsLease() bool {
	return k == AcquireLeaseAndDownUnreachable || k == AcquireLeaseAndDownIndirectlyConnected
}

// Indirect reports whether the decision downs indirectly connected members.
func (k Kind) Indirect() bool {
	return k == DownIndirectlyConnected || k == ReverseDownIndirectlyConnected || k == AcquireLeaseAndDownIndirectlyConnected
}

// Granted returns what is done once the lease is granted; a kind that needs no lease is returned as it is.
func (k Kind) Granted() Kind {
	switch k {
	case AcquireLeaseAndDownUnreachable:
		return DownUnreachable
	case AcquireLeaseAndDownIndirectlyConnected:
		return DownIndirectlyConnected
	default:
		return k
	}
}

// Reverse returns what is done when the lease is not granted; a kind that needs no lease is returned as it is.
func (k Kind) Reverse() Kind {
	switch k {
	case AcquireLeaseAndDownUnreachable:
		return DownReachable
	case AcquireLeaseAndDownIndirectlyConnected:
		return ReverseDownIndirectlyConnected
	default:
		return k
	}
}

// Choice is what a strategy answers: a kind, and one sentence why.
type Choice struct {
	Kind Kind
	// Delay is how long to wait before asking for the lease. Zero for kinds without a lease.
	Delay time.Duration
	// Minority says that Self is on the smaller side.
	Minority bool
	// Reason is one sentence without a full stop, in words and counts.
	Reason string
}

// Strategy decides which side of a partition stays up.
// Decide must be pure and total: the same view gives the same choice, and no view makes it panic.
// An empty Kind (None) keeps everybody. Implementations are safe for concurrent use.
type Strategy interface {
	Decide(v *View) Choice
}

// Decision is a choice together with the members it downs.
type Decision struct {
	Choice
	// Final differs from Kind only where a safeguard turned the choice into DownAll.
	Final Kind
	// Down are the members that Final downs, in address order. For kinds with a lease: once the lease is granted.
	Down []ID
}

// Off is the threshold of Decide that never turns a decision about indirectly connected members into DownAll.
const Off = 1.0

// Decide asks the strategy about v and works out whom the answer downs.
//
// Members that are indirectly connected are looked at twice, as the reference does: a choice about them is widened by what the
// strategy says of the clean partition that remains without them. If it would then down at least the threshold's share of the base members
// it becomes DownAll; a threshold of 1 switches that safeguard off.
func Decide(s Strategy, v *View, threshold float64) Decision {
	d := Decision{Choice: s.Decide(v)}
	d.Final = d.Kind
	if !d.Kind.Indirect() {
		d.Down = v.downedBy(d.Kind, nil)
		return d
	}
	ind, ok := v.secondPass(s)
	if !ok {
		d.Final = DownAll
		d.Reason += "; the second pass found indirectly connected members again, so all go down"
		d.Down = v.downedBy(DownAll, nil)
		return d
	}
	d.Down = v.downedBy(d.Kind, ind)
	v.safeguard(&d, threshold)
	return d
}

// Reversed returns the decision that is carried out when the lease is not granted.
// Decisions that need no lease are returned unchanged.
func (d Decision) Reversed(v *View, threshold float64) Decision {
	if !d.Final.NeedsLease() {
		return d
	}
	d.Final = d.Final.Reverse()
	d.Down = v.downedBy(d.Final, v.conflicts().indirect)
	if d.Final.Indirect() {
		v.safeguard(&d, threshold)
	}
	return d
}

// safeguard turns a decision that downs too large a share of the base members into DownAll (akka-core#32862).
// A decision that downs nobody stays what it is, whatever the threshold (design deviation 7).
func (v *View) safeguard(d *Decision, threshold float64) {
	base := v.Count("").Total()
	if threshold >= Off || base == 0 || len(d.Down) == 0 || float64(len(d.Down))/float64(base) < threshold {
		return
	}
	d.Reason += fmt.Sprintf("; that is %d of %d members, at or above the limit of %g, so all go down", len(d.Down), base, threshold)
	d.Final = DownAll
	d.Down = v.downedBy(DownAll, nil)
}

// downedBy lists the downable members that a kind downs, in address order; ind tells of each member whether it goes down as
// indirectly connected (nil: nobody).
func (v *View) downedBy(k Kind, ind []bool) []ID {
	if k == None {
		return nil
	}
	n := 0
	for i := range v.Members {
		if k.downs(&v.Members[i], at(ind, i)) {
			n++
		}
	}
	down := make([]ID, 0, n)
	for i := range v.Members {
		if m := &v.Members[i]; k.downs(m, at(ind, i)) {
			down = append(down, m.ID)
		}
	}
	return down
}

// downs reports whether a decision of this kind downs the member.
func (k Kind) downs(m *Member, indirect bool) bool {
	if !m.Downable() {
		return false
	}
	switch k {
	case DownUnreachable, AcquireLeaseAndDownUnreachable:
		return m.Unreachable
	case DownReachable:
		return !m.Unreachable
	case DownAll:
		return true
	case DownIndirectlyConnected, AcquireLeaseAndDownIndirectlyConnected:
		return indirect
	case ReverseDownIndirectlyConnected:
		return !m.Unreachable || indirect
	default:
		return false
	}
}
