package scenario

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Scenario is a whole file. Start from Default; the zero Scenario does not validate.
type Scenario struct {
	// Name is for people. Empty: Parse takes it from the name of the file.
	Name    string  `yaml:"name"`
	Cluster Cluster `yaml:"cluster"`
	// Steps are what happens, in any order; those at the same time happen in the order of the file. Where
	// times are ranges, each run draws its own: see Drawn.
	Steps []Step `yaml:"steps"`
	// RunFor is how much time passes in all.
	RunFor time.Duration `yaml:"run-for"`
	Expect Expect        `yaml:"expect"`
}

// Cluster is what the run starts with: all nodes up, and known to each other.
type Cluster struct {
	System             string                    `yaml:"system"`
	Nodes              Nodes                     `yaml:"nodes"`
	SplitBrainResolver config.SplitBrainResolver `yaml:"split-brain-resolver"`
	Lease              config.Lease              `yaml:"lease"`
	Detection          Detection                 `yaml:"detection"`
	Network            Network                   `yaml:"network"`
	// ReapAfter is when Serf forgets a failed member: its reconnect time-out.
	ReapAfter time.Duration `yaml:"reap-after"`
	// Settings are the rules of members, by name, that differ from SplitBrainResolver: all of them, not only
	// what differs. In a file they say what differs.
	Settings map[string]*config.SplitBrainResolver `yaml:"settings"`
	// Singletons run on one member each. They need a cluster in which all know each other: see
	// world.Options.Resolvers.
	Singletons []Singleton `yaml:"singletons"`
	// Shards are spread over the members. They need what Singletons need.
	Shards []Shards `yaml:"shards"`
}

// Node is a member of the cluster.
type Node struct {
	Name  string   `yaml:"name"`
	Roles []string `yaml:"roles"`
	// Zone is a name that stands for all nodes with it where nodes are listed.
	Zone string `yaml:"zone"`
}

// Network are the properties of every link that is not cut.
type Network = world.Network

// Step is one thing that happens: a time, exactly one action, and what belongs to that action.
type Step struct {
	// At is when, counted from the start of the run.
	At *Time `yaml:"at"`

	// Partition cuts the network into groups; nodes that are not named form one more. It replaces the last
	// partition.
	Partition *[][]string `yaml:"partition"`
	// Cut cuts the link between two nodes, CutOneWay drops what the first sends to the second.
	Cut       *[]string `yaml:"cut"`
	CutOneWay *[]string `yaml:"cut-one-way"`
	// Link sets the Loss and the Latency of what goes between two nodes or zones, both ways; LinkOneWay of
	// what the first sends to the second. All of it lost cuts the link; nothing lost and a latency of 0 s
	// heals it.
	Link       *[]string      `yaml:"link"`
	LinkOneWay *[]string      `yaml:"link-one-way"`
	Loss       *float64       `yaml:"loss"`
	Latency    *time.Duration `yaml:"latency"`
	// Heal repairs every link; it must be true.
	Heal *bool `yaml:"heal"`
	// Crash stops a node at once. Restart starts a new incarnation, and crashes the old one if it still runs:
	// under the same name, or As another one; with the state folder of the old one, or with State "lost"
	// without it.
	Crash   *string `yaml:"crash"`
	Restart *string `yaml:"restart"`
	As      *string `yaml:"as"`
	State   *string `yaml:"state"`
	Leave   *string `yaml:"leave"`
	// ForceLeave lets an operator remove nodes from the lists of the members On some others, as soon as they
	// are called failed there.
	ForceLeave *[]string `yaml:"force-leave"`
	On         *[]string `yaml:"on"`
	// Down lets an operator down a node for good, asking the member By: sbr down.
	Down *string `yaml:"down"`
	By   *string `yaml:"by"`
	// Join adds a node that was not there from the start.
	Join *string `yaml:"join"`
	// Pause stops a node For so long without ending it: nothing runs, packets wait.
	Pause *string `yaml:"pause"`
	// LeaseStore hurts the way of Nodes to the lease store, of all if there are none, For so long, or to the
	// end; or the store forgets.
	LeaseStore *StoreFault `yaml:"lease-store"`
	// Rights, which must be "none", lets the store refuse Nodes whatever they ask, as one does that took
	// their rights away.
	Rights *string `yaml:"rights"`
	Clock  *Clock  `yaml:"clock"`

	Nodes *[]string `yaml:"nodes"`
	For   *Time     `yaml:"for"`
}

// Clock sets the clocks of a node.
type Clock struct {
	Node string `yaml:"node"`
	// Skew is how far the wall clock is ahead. Nothing but the birth of a later incarnation depends on it.
	Skew *time.Duration `yaml:"skew"`
	// Rate is how fast the monotonic clock runs; 1 is right.
	Rate *float64 `yaml:"rate"`
}

// Expect is what must hold at the end. What is absent is not checked.
type Expect struct {
	// Survivors are exactly the nodes that run and were not downed; SurvivorsOneOf lists such sets.
	Survivors      *[]string   `yaml:"survivors"`
	SurvivorsOneOf *[][]string `yaml:"survivors-one-of"`
	SurvivorCount  *int        `yaml:"survivor-count"`
	// Down are exactly the nodes that were downed.
	Down *[]string `yaml:"down"`
	// LeaseHolder is the name of the node that holds the lease, or none.
	LeaseHolder *string `yaml:"lease-holder"`
	// ResolvedWithin bounds the time from the last step that cut something (without one: that crashed, paused
	// or downed a member) until every member still up was at work and reached all the others it believed in.
	ResolvedWithin *time.Duration `yaml:"resolved-within"`
	// Decisions are the last decisions that these nodes made.
	Decisions map[string]string `yaml:"decisions"`
	// Singletons are the nodes on which they run at the end, by the name of the singleton, or none.
	Singletons map[string]string `yaml:"singletons"`
	// Shards are the nodes on which all shards of a type run at the end, by the type: each of the nodes runs
	// some.
	Shards map[string][]string `yaml:"shards"`
}

// Default is the scenario of an empty file: five nodes without steps. RunFor must be set before it validates.
func Default() Scenario {
	return Scenario{Cluster: Cluster{
		System:             "scenario",
		Nodes:              Nodes{Count: 5},
		SplitBrainResolver: config.DefaultSplitBrainResolver(),
		Detection:          DefaultDetection(),
		Network:            Network{Latency: time.Millisecond, Jitter: time.Millisecond},
		ReapAfter:          24 * time.Hour, // serf.DefaultConfig
	}}
}
