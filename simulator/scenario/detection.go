package scenario

import (
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// profilePrefix and a profile of package timing make the name of a detection.
const profilePrefix = "serf-"

// Detection says how long members need to notice: times that hold for every observer, or the name of a
// profile of Serf.
type Detection struct {
	// Profile is serf-lan, serf-wan or serf-local; empty: Times are used.
	Profile string
	Times   DetectionTimes
}

// DetectionTimes are the same for every observer; own probes do not change them.
type DetectionTimes = world.Times

// DefaultDetection is serf-lan. Times that are left out of a list of them are 4 s, 1 s and 1 s.
func DefaultDetection() Detection {
	return Detection{
		Profile: profilePrefix + "lan",
		Times:   DetectionTimes{After: 4 * time.Second, Spread: time.Second, Heal: time.Second},
	}
}

// Target implements strictyaml.Variant.
func (d *Detection) Target(s strictyaml.Shape) any {
	switch s {
	case strictyaml.Scalar:
		return &d.Profile
	case strictyaml.Mapping:
		d.Profile = ""
		return &d.Times
	default:
		return nil
	}
}

// Expected implements strictyaml.Variant.
func (*Detection) Expected() string {
	return strings.Join(profiles(), ", ") + " or {after, spread, heal}"
}

func profiles() (names []string) {
	for _, p := range timing.Profiles() {
		names = append(names, profilePrefix+p)
	}
	return names
}

// options are the simulator's words for it: the settings of the membership, and the times that it goes by
// instead, if any. Where there are times, Serf's default settings carry what else members tell each other.
func (d *Detection) options() (world.Memberlist, *world.Times) {
	serf, known := world.MemberlistOf(strings.TrimPrefix(d.Profile, profilePrefix))
	if known {
		return serf, nil
	}
	serf, _ = world.MemberlistOf("lan")
	return serf, &d.Times
}
