package allocation

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Member is a member that may own shards.
type Member struct {
	// ID is the incarnation, the owner of shards. Required, and unique among the members.
	ID sbr.ID
	// Name is hashed. A node that restarts is another ID under the same name, and so gets its former shards
	// back.
	Name string
	// Roles are the member's roles, for a Target: zones, sizes. The rule of this package does not look at
	// them.
	Roles []string
	// Leaving says that the member leaves: it gets no shards and gives up those it has, before any
	// rebalancing.
	Leaving bool
	// Unreachable says that it is unknown whether the member's shards still run: the member keeps them and
	// gets no others. Pass a downed member like this until its removal margin is over. While a member is
	// unreachable, nothing is rebalanced.
	Unreachable bool
}

// Placement is where one shard is. The zero value: it runs nowhere.
type Placement struct {
	// Owner is the member that runs the shard, or ran it last. An owner that is not among the members is
	// gone: the shard may start elsewhere. Empty: none.
	Owner sbr.ID
	// To is the member that the shard moves to. The shard counts as being there, and is not moved again until
	// it has arrived. Empty, or not among the members: the shard stays where it is.
	To sbr.ID
}

// Reason says why a shard moves, in one word.
type Reason string

// The reasons, the most urgent first.
const (
	// Unowned: the shard runs nowhere.
	Unowned Reason = "unowned"
	// OwnerLeaves: its owner leaves.
	OwnerLeaves Reason = "owner-leaves"
	// Preferred: the shard's hash prefers a member that has less than its share.
	Preferred Reason = "preferred"
	// OwnerFull: its owner has more than the capacity.
	OwnerFull Reason = "owner-full"
)

// Move takes one shard to another member.
type Move struct {
	Shard string
	// From is Placement.Owner: empty, or the ID of a member that is gone, when the shard runs nowhere.
	From sbr.ID
	// To is a member that is neither leaving nor unreachable.
	To     sbr.ID
	Reason Reason
}

// Allocator allocates the shards of one type. It does not change: share it freely.
type Allocator struct {
	config Config
	shards []string // sorted
	hashes []uint64 // of the shards, in their order
}

// New returns an allocator of the named shards of a type. The type's name goes into the hash, so that the
// shards "0" of all types do not meet on one member. Errors: what Config.Validate returns, no shards, and
// names that are empty or used twice; all of them.
func New(kind string, shards []string, config Config) (*Allocator, error) {
	a := &Allocator{config: config, shards: slices.Sorted(slices.Values(shards))}
	errs := []error{config.Validate()}
	if len(shards) == 0 {
		errs = append(errs, errors.New("there are no shards: name at least one"))
	}
	seed := mix(xxhash.Sum64String(kind))
	a.hashes = make([]uint64, len(a.shards))
	for i, name := range a.shards {
		if name == "" {
			errs = append(errs, errors.New("a shard has no name"))
		}
		if i > 0 && name == a.shards[i-1] {
			errs = append(errs, fmt.Errorf("the shard %q is named twice", name))
		}
		a.hashes[i] = mix(seed + xxhash.Sum64String(name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("shards of type %q: %w", kind, err)
	}
	return a, nil
}

// Shards returns the names, sorted.
func (a *Allocator) Shards() []string { return slices.Clone(a.shards) }

// mix spreads each bit over all others: the finalizer of SplitMix64 (Steele, Lea, Flood; constants by
// Stafford, variant 13).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Target says which member each shard should be on, in place of this package's rule: by zones, by weights, or
// by name. shards are all shards, by name; members those that can be given shards, by name, at least one;
// owners has the member that each shard runs on, or is on its way to, if it still is there. The result has a
// member's ID by shard. A shard that is missing there, or whose member is none of those given, stays where it
// runs; if it runs nowhere, or its owner leaves, the rule of this package finds a member.
//
// It must be a function of its arguments alone, since the coordinator may be on any member; a result that
// changes without them moves shards for ever. It must not block, nor change or keep what it is given.
type Target func(shards []string, members []Member, owners map[string]sbr.ID) map[string]sbr.ID

// Config says how evenly shards are spread and how many change their place at once. Its zero value is not
// valid: start from DefaultConfig. Only the coordinator uses it: if members have different settings, the
// newest coordinator's count.
type Config struct {
	// LoadFactor bounds what one member gets: ceil(LoadFactor × shards / members). 1 is perfect balance and
	// costs the most moves, 2 bounds hardly anything. From 1 to 1000, rounded to thousandths.
	LoadFactor float64
	// MaxMoves is how many shards that run well may be under way to a better place at once. Zero: none, ever;
	// then a member that joins gets a shard only when another member's are without owner.
	MaxMoves int
	// MaxRecoveries is how many shards without owner, or of members that leave, may be under way at once. At
	// least 1.
	MaxRecoveries int
	// Target says where shards should be. Nil: the rule of this package. It is not bounded by LoadFactor.
	Target Target
}

// DefaultConfig returns a load factor of 1.25, one move and 100 recoveries at once.
func DefaultConfig() Config { return Config{LoadFactor: 1.25, MaxMoves: 1, MaxRecoveries: 100} }

// Validate returns every problem at once, nil if there is none.
func (c Config) Validate() error {
	var errs []error
	if !(c.LoadFactor >= 1 && c.LoadFactor <= 1000) { // NaN fails both
		errs = append(errs, fmt.Errorf("load-factor is %v; it must be from 1 (perfect balance) to 1000",
			c.LoadFactor))
	}
	if c.MaxMoves < 0 {
		errs = append(errs, fmt.Errorf("max-moves is %d; it must be 0 (no rebalancing) or more", c.MaxMoves))
	}
	if c.MaxRecoveries < 1 {
		errs = append(errs, fmt.Errorf("max-recoveries is %d; it must be 1 or more, or no lost shard would start again", c.MaxRecoveries))
	}
	return errors.Join(errs...)
}

// capacity is ceil(LoadFactor × shards / members), in whole thousandths, so that no rounding error of a float
// adds a shard.
func (c Config) capacity(shards, members int) int {
	thousandths, over := int64(math.Round(c.LoadFactor*1000)), 1000*int64(members)
	return int(min(int64(shards), (thousandths*int64(shards)+over-1)/over))
}
