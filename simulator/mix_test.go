package simulator_test

import (
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// mix is a cluster of 2 to 7 members to which anything happens, several times, in any order and at the same time.
type mix struct{}

func (mix) Build(seed uint64) (*scenario.Scenario, error) {
	pause := func(name string) simulator.Nemesis { return simulator.Pause(name, 40*sec) }
	crash := func(name string) simulator.Nemesis { return simulator.CrashAndRestart(name, 20*sec) }
	anything := simulator.Choice(
		simulator.PartitionRandomly(), simulator.PartitionRandomly(), simulator.Heal(),
		simulator.RandomLink(),
		simulator.Swizzle(0, 20*sec),
		simulator.Flap(3, 10*sec, 5*sec, simulator.PartitionRandomly()),
		simulator.OnRandom(1, pause), simulator.OnRandom(1, crash), simulator.OnRandom(1, simulator.Crash), simulator.OnRandom(1, simulator.Leave),
		simulator.RollingUpdate(20*sec, 5*sec),
		simulator.ScrambleClocks(time.Hour, 0.02),
		simulator.StoreFaults(time.Minute), simulator.StoreFaults(time.Minute),
		simulator.JoinAnother(),
	)
	s := simulator.New("mix").Nodes(2+int(seed%6)).StableAfter(time.Duration(3+seed%15)*sec).Detect(2*sec, 2*sec, sec).
		MinorityDelay(time.Duration(seed%4)*sec).Network(time.Millisecond, 20*time.Millisecond).
		At(10*sec, simulator.PartitionRandomly()).
		At(5*sec, simulator.Repeat(4, 10*sec, simulator.Within(20*sec, anything)), simulator.Repeat(4, 10*sec, simulator.Within(20*sec, anything)))
	if seed%3 == 0 {
		s.WhenLeaseUnknown("suspend")
	}
	if seed%2 == 0 {
		s.Resolver("down-all-when-unstable: off")
	}
	return s.Build(seed)
}

// No mix of faults breaks a promise of lease-majority.
func TestRun_NoMixOfNemesesBreaksAPromise(t *testing.T) {
	simulator.Run(t, mix{}, simulator.Seeds(1, 2000))
}
