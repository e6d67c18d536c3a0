package simulator

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// seedsVariable is read by Run. It is no flag: a flag of a package's tests is unknown to those of all others,
// so that it could not be given to go test ./..., and it may clash with a flag of the user's.
const seedsVariable = "SBR_SEEDS"

// maxSeeds bounds one range: more is a slip of the finger.
const maxSeeds = 10_000_000

// seeds is a range, both ends included.
type seeds struct{ from, to uint64 }

func (s seeds) count() uint64 { return s.to - s.from + 1 }

// String is for people.
func (s seeds) String() string {
	if s.from == s.to {
		return fmt.Sprintf("seed %d", s.from)
	}
	return fmt.Sprintf("seeds %d-%d", s.from, s.to)
}

func (s seeds) validate() error {
	switch {
	case s.from > s.to:
		return fmt.Errorf("seeds must go upwards: %d-%d", s.to, s.from)
	case s.to-s.from >= maxSeeds:
		return fmt.Errorf("at most %d seeds are played at once", maxSeeds)
	default:
		return nil
	}
}

// fromEnvironment takes over what the environment says, if it says anything.
func (s *seeds) fromEnvironment() error {
	text := os.Getenv(seedsVariable)
	if text == "" {
		return s.validate()
	}
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	from, errA := strconv.ParseUint(a, 10, 64)
	to, errB := strconv.ParseUint(b, 10, 64)
	if errA != nil || errB != nil {
		return fmt.Errorf("%s is %.40q: it must be a seed such as 7, or a range such as 1-200", seedsVariable, text)
	}
	*s = seeds{from, to}
	if err := s.validate(); err != nil {
		return fmt.Errorf("%s: %w", seedsVariable, err)
	}
	return nil
}
