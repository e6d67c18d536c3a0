package scenario

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Nodes is a number of nodes, n1 and so on, or a list of them.
type Nodes struct {
	Count int
	// List, when not nil, is used instead of Count.
	List []Node
}

// Target implements strictyaml.Variant.
func (n *Nodes) Target(s strictyaml.Shape) any {
	switch s {
	case strictyaml.Scalar:
		return &n.Count
	case strictyaml.List:
		n.List, n.Count = []Node{}, 0
		return &n.List
	default:
		return nil
	}
}

// Expected implements strictyaml.Variant.
func (*Nodes) Expected() string { return "a number, or a list of nodes {name, roles, zone}" }

// All returns the nodes as a list. A number far above the limit is not listed: it is refused.
func (n *Nodes) All() []Node {
	if n.List != nil {
		return n.List
	}
	nodes := make([]Node, min(max(n.Count, 0), 10*maxNodes))
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("n%d", i+1)
	}
	return nodes
}

// The kinds of StoreFault that are one word.
const (
	faultDown          = "down"
	faultLoseRequests  = "lose-requests"
	faultLoseResponses = "lose-responses"
	faultConflict      = "conflict"
	faultForget        = "forget"
)

var faultKinds = []string{faultDown, faultLoseRequests, faultLoseResponses, faultConflict, faultForget}

// StoreFault is what a lease-store step does: a Kind that is one word, or a Change with a time.
type StoreFault struct {
	// Kind is down (nothing gets through), lose-requests or lose-responses (all vanish on the way there, or
	// back), conflict (another client touches the record before each write), or forget (the record is
	// deleted).
	Kind   string
	Change StoreChange
}

// StoreChange is a store that needs so much longer for each answer, or that becomes what it was at that time
// of the run.
type StoreChange struct {
	Slow    *time.Duration `yaml:"slow"`
	Restore *time.Duration `yaml:"restore"`
}

// forgets reports whether the store itself changes, and not a member's way to it.
func (f *StoreFault) forgets() bool {
	return f.Kind == faultForget || f.Kind == "" && f.Change.Restore != nil
}

// Target implements strictyaml.Variant.
func (f *StoreFault) Target(s strictyaml.Shape) any {
	switch s {
	case strictyaml.Scalar:
		return &f.Kind
	case strictyaml.Mapping:
		return &f.Change
	default:
		return nil
	}
}

// Expected implements strictyaml.Variant.
func (*StoreFault) Expected() string {
	return "down, lose-requests, lose-responses, conflict, forget, {slow: 800ms} or {restore: 30s}"
}

// fault is the simulator's word for it.
func (f *StoreFault) fault() (sf world.StoreFault) {
	switch f.Kind {
	case faultDown:
		sf.Access = world.Silent
	case faultLoseRequests:
		sf.LoseRequests = 1
	case faultLoseResponses:
		sf.LoseAnswers = 1
	case faultConflict:
		sf.Conflicts = 1
	default:
		sf.Slow = *f.Change.Slow / 2 // on each of the two legs
	}
	return sf
}
