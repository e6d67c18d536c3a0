package scenario

import (
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/simulator/world"
)

// profilePrefix and a profile of package timing make the name of a detection.
const profilePrefix = "serf-"

// Detection says how long members need to notice: times that hold for every observer, or the name of a profile of Serf.
type Detection struct {
	// Profile is serf-lan, serf-wan or serf-local; empty: Times are used.
	Profile string
	Times   DetectionTimes
}

// DetectionTimes are the same for every observer; own probes do not change them.
type DetectionTimes struct {
	// After is the least time from a cut to "failed", Heal from a repair to "alive"; Spread is what chance adds at most.
	After  time.Duration `yaml:"after"`
	Spread time.Duration `yaml:"spread"`
	Heal   time.Duration `yaml:"heal"`
}

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

// options are the simulator's words for it in a cluster of so many nodes.
func (d *Detection) options(nodes int, probes timing.Probes) world.DetectionOptions {
	if d.Profile == "" {
		return world.DetectionOptions{After: d.Times.After, Spread: d.Times.Spread, Heal: d.Times.Heal}
	}
	g, _ := timing.Profile(strings.TrimPrefix(d.Profile, profilePrefix)) // validated
	return serf(g, nodes, probes)
}

// serf is the model of Serf's detector, fitted to what was measured on it with the LAN profile: a side that is not smaller than the
// other one needs 6 to 12 s. The smaller side condemns the others one at a time: a lone node needs 50 s for all of them in a
// cluster of 5, 92 s of 10, 182 s of 20, and two nodes share the work. Where too few members exist to confirm a suspicion, as
// in a cluster of three, nobody waits for that, and both sides are equally quick.
// Own probes know nothing of this; they bound it from above.
func serf(g timing.Gossip, nodes int, probes timing.Probes) world.DetectionOptions {
	suspicion := g.SuspicionMin(nodes)
	o := world.DetectionOptions{
		After: g.ProbeInterval + suspicion, Spread: g.SuspicionMin(1) * 5 / 4, Heal: g.ProbeInterval / 2, Share: true,
	}
	if g.SuspicionMax(nodes) > suspicion {
		o.Step = (12*time.Duration(nodes) + 30) * g.ProbeInterval / time.Duration(nodes)
	}
	if probes.On() {
		p := probes.Detection(max(nodes-1, 1), g.Spread(nodes))
		o.Probed, o.ProbedSpread = p.Fastest, p.Worst-p.Fastest
	}
	return o
}
