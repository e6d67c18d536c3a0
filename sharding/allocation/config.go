package allocation

import (
	"errors"
	"fmt"
	"math"
)

// Config says how evenly shards are spread and how many change their place at once. Its zero value is not valid: start from
// DefaultConfig. It is the coordinator's alone: members with different settings do not quarrel, the newest coordinator's count.
type Config struct {
	// LoadFactor bounds what one member gets: ceil(LoadFactor × shards / members). 1 is perfect balance and costs the most moves,
	// 2 bounds hardly anything. From 1 to 1000; what is finer than a thousandth is rounded.
	LoadFactor float64
	// MaxMoves is how many shards that run well may be under way to a better place at once. Zero: none, ever; then a member that
	// joins gets a shard only when another member's are without owner.
	MaxMoves int
	// MaxRecoveries is how many shards without owner, or of members that leave, may be under way at once. At least 1.
	MaxRecoveries int
}

// DefaultConfig returns a load factor of 1.25, one move and 100 recoveries at once.
func DefaultConfig() Config { return Config{LoadFactor: 1.25, MaxMoves: 1, MaxRecoveries: 100} }

// Validate returns every problem at once, nil if there is none.
func (c Config) Validate() error {
	var errs []error
	if !(c.LoadFactor >= 1 && c.LoadFactor <= 1000) { // NaN fails both
		errs = append(errs, fmt.Errorf("load-factor is %v; it must be from 1 (perfect balance) to 1000", c.LoadFactor))
	}
	if c.MaxMoves < 0 {
		errs = append(errs, fmt.Errorf("max-moves is %d; it must be 0 (no rebalancing) or more", c.MaxMoves))
	}
	if c.MaxRecoveries < 1 {
		errs = append(errs, fmt.Errorf("max-recoveries is %d; it must be 1 or more, or no lost shard would start again", c.MaxRecoveries))
	}
	return errors.Join(errs...)
}

// capacity is ceil(LoadFactor × shards / members), in whole thousandths, so that no rounding error of a float adds a shard.
func (c Config) capacity(shards, members int) int {
	thousandths, over := int64(math.Round(c.LoadFactor*1000)), 1000*int64(members)
	return int(min(int64(shards), (thousandths*int64(shards)+over-1)/over))
}
