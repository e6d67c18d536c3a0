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

// kinds are the names that logs and JSON use, what each kind becomes once the lease is granted or when it is
// not, and whether it downs indirectly connected members.
var kinds = [...]kind{
	None:            {"none", None, None, false},
	DownUnreachable: {"down-unreachable", DownUnreachable, DownUnreachable, false},
	DownReachable:   {"down-reachable", DownReachable, DownReachable, false},
	DownAll:         {"down-all", DownAll, DownAll, false},
	DownIndirectlyConnected: {"down-indirectly-connected", DownIndirectlyConnected,
		DownIndirectlyConnected, true},
	ReverseDownIndirectlyConnected: {
		"reverse-down-indirectly-connected", ReverseDownIndirectlyConnected, ReverseDownIndirectlyConnected, true,
	},
	AcquireLeaseAndDownUnreachable: {"acquire-lease-and-down-unreachable", DownUnreachable,
		DownReachable, false},
	AcquireLeaseAndDownIndirectlyConnected: {
		"acquire-lease-and-down-indirectly-connected", DownIndirectlyConnected, ReverseDownIndirectlyConnected, true,
	},
}

type kind struct {
	name              string
	granted, reversed Kind
	indirect          bool
}

func (k Kind) of() kind {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return kind{fmt.Sprintf("kind(%d)", uint8(k)), k, k, false}
}

// String returns the name that logs and JSON use.
func (k Kind) String() string { return k.of().name }

// ParseKind reads a name written by Kind.String; ok is false for any other text.
func ParseKind(name string) (k Kind, ok bool) {
	i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.name == name })
	return Kind(max(i, 0)), i >= 0
}

// NeedsLease reports whether the decision waits for the lease.
func (k Kind) NeedsLease() bool { return k.of().granted != k }

// Indirect reports whether the decision downs indirectly connected members.
func (k Kind) Indirect() bool { return k.of().indirect }

// Granted returns what is done once the lease is granted; without a lease the kind stays as it is.
func (k Kind) Granted() Kind { return k.of().granted }

// Reverse returns what is done when the lease is not granted; without a lease the kind stays as it is.
func (k Kind) Reverse() Kind { return k.of().reversed }

// Choice is what a strategy answers: a kind, and one sentence why.
type Choice struct {
	Kind Kind
	// Delay is how long to wait before asking for the lease. Zero for kinds without a lease.
	Delay time.Duration
	// Minority says that Self is on the smaller side.
	Minority bool
	// Group are the members that stay, where the strategy keeps the largest group of a cut that is not clean;
	// nil otherwise.
	Group *Group
	// Reason is one sentence without a full stop, in words and counts.
	Reason string
}

// Strategy decides which side of a partition stays up.
// Decide must be pure and total: the same view gives the same choice, and no view makes it panic.
// An empty Kind (None) keeps all members. Implementations are safe for concurrent use.
type Strategy interface {
	Decide(v *View) Choice
}

// Decision is a choice together with the members it downs.
type Decision struct {
	Choice
	// Final differs from Kind only where a safeguard turned the choice into DownAll.
	Final Kind
	// Down are the members that Final downs, in address order; for kinds with a lease, once it is granted.
	Down []ID
}

// Off is the threshold of Decide that never turns a decision about indirectly connected members into DownAll.
const Off = 1.0

// Decide asks the strategy about v and works out which members the answer downs.
//
// Members that are indirectly connected are looked at twice, as the reference does: a choice about them is
// widened by what the strategy says of the clean partition that remains without them. If it would then down
// at least the threshold's share of the base members it becomes DownAll, unless the threshold is 1. A choice
// with a Group downs all members outside it; the threshold has no effect then: the lease makes every group
// safe.
func Decide(s Strategy, v *View, threshold float64) Decision {
	d := Decision{Choice: s.Decide(v)}
	d.Final = d.Kind
	if d.Group != nil {
		d.Down = v.Outside(d.Group)
		return d
	}
	if !d.Kind.Indirect() {
		d.Down = v.downedBy(d.Kind, nil)
		return d
	}
	down, ok := v.secondPass(s)
	if !ok {
		d.Final = DownAll
		d.Reason += "; the second pass found indirectly connected members again, so all go down"
		d.Down = v.downedBy(DownAll, nil)
		return d
	}
	d.Down = v.downedBy(d.Kind, down)
	v.safeguard(&d, threshold)
	return d
}

// Reversed returns the decision that is carried out when the lease is not granted. Decisions that need no
// lease are returned unchanged. Where a group was to stay, all members that are heard go down, so that those
// that are not may go on.
func (d Decision) Reversed(v *View, threshold float64) Decision {
	if !d.Final.NeedsLease() {
		return d
	}
	if d.Group != nil {
		d.Final, d.Down = DownReachable, d.Group.Heard
		return d
	}
	d.Final = d.Final.Reverse()
	d.Down = v.downedBy(d.Final, v.indirect().members)
	if d.Final.Indirect() {
		v.safeguard(&d, threshold)
	}
	return d
}

// safeguard turns a decision that downs too large a share of the base members into DownAll (akka-core#32862).
// A decision that downs no member stays as it is, whatever the threshold (design deviation 7).
func (v *View) safeguard(d *Decision, threshold float64) {
	here, there := v.Count("")
	base := here.Base() + there.Base()
	if threshold >= Off || base == 0 || len(d.Down) == 0 || float64(len(d.Down))/float64(base) < threshold {
		return
	}
	d.Reason += fmt.Sprintf("; that is %d of %d members, at or above the limit of %g, so all go down",
		len(d.Down), base, threshold)
	d.Final = DownAll
	d.Down = v.downedBy(DownAll, nil)
}

// Outside lists the downable members that a group leaves out, in address order.
func (v *View) Outside(g *Group) (down []ID) {
	stays := make(set, len(g.Members))
	for _, id := range g.Members {
		stays.add(id)
	}
	for i := range v.Members {
		if m := &v.Members[i]; m.Downable() && !stays.has(m.ID) {
			down = append(down, m.ID)
		}
	}
	return down
}

// downedBy lists the downable members that a kind downs, in address order; indirect are those that
// go down as indirectly connected.
func (v *View) downedBy(k Kind, indirect places) []ID {
	if k == None {
		return nil
	}
	n := 0
	for i := range v.Members {
		if k.downs(&v.Members[i], indirect.has(i)) {
			n++
		}
	}
	down := make([]ID, 0, n)
	for i := range v.Members {
		if m := &v.Members[i]; k.downs(m, indirect.has(i)) {
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
