package explore

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Shard is one of several equal parts of a range of seeds: every Of-th seed, beginning with the Index-th. The shards 1/n to n/n of a
// range have no seed in common, and together they have all. Parts are interleaved, so that a budget of time that ends early
// leaves out the last seeds everywhere, and not whole stretches of the range. The zero Shard is the only part, as 1/1.
type Shard struct {
	// Index counts from 1.
	Index, Of int
}

// maxShards bounds Of: more is a slip of the finger.
const maxShards = 1_000_000

var errShard = errors.New("must be a part such as 2/8: the second of eight")

// ParseShard reads what String writes.
func ParseShard(text string) (Shard, error) {
	a, b, _ := strings.Cut(text, "/")
	index, errA := number(a)
	of, errB := number(b)
	switch s := (Shard{Index: index, Of: of}); {
	case errA != nil || errB != nil:
		return Shard{}, errShard
	default:
		return s, s.Validate()
	}
}

// number reads digits and nothing else: no sign, no spaces.
func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

// Validate returns nil if the shard is the zero Shard, or one of 1/n to n/n.
func (s Shard) Validate() error {
	switch {
	case s == Shard{}:
		return nil
	case s.Of < 1 || s.Of > maxShards:
		return fmt.Errorf("%d/%d: the number of shards must be 1 to %d", s.Index, s.Of, maxShards)
	case s.Index < 1 || s.Index > s.Of:
		return fmt.Errorf("%d/%d: shards count from 1/%d to %d/%d", s.Index, s.Of, s.Of, s.Of, s.Of)
	default:
		return nil
	}
}

// normal writes the zero Shard as 1/1.
func (s Shard) normal() Shard {
	if s == (Shard{}) {
		return Shard{Index: 1, Of: 1}
	}
	return s
}

// String is "2/8".
func (s Shard) String() string {
	s = s.normal()
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// MarshalText writes what String does.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseShard.
func (s *Shard) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShard(string(text))
	return err
}

// Split returns the same seeds in n parts, for so many workers.
func (s Shard) Split(n int) []Shard {
	s = s.normal()
	parts := make([]Shard, n)
	for i := range parts {
		parts[i] = Shard{Index: s.Index + i*s.Of, Of: s.Of * n}
	}
	return parts
}

// Seeds are those of the range from..to, both included, that belong to the shard, upwards.
func (s Shard) Seeds(from, to uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		step := uint64(s.normal().Of)
		for i, n := uint64(0), s.Count(from, to); i < n; i++ {
			if !yield(from + uint64(s.normal().Index-1) + i*step) {
				return
			}
		}
	}
}

// Count is how many seeds Seeds gives. The range must not be all of the numbers there are.
func (s Shard) Count(from, to uint64) uint64 {
	s = s.normal()
	first := uint64(s.Index - 1)
	if from > to || to-from < first {
		return 0
	}
	return (to-from-first)/uint64(s.Of) + 1
}
