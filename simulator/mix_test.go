package simulator_test

import (
	"fmt"
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
	rules := fmt.Sprintf("stable-after: %ds, lease-majority: {acquire-lease-delay-for-minority: %ds, when-lease-unknown: %s}, down-all-when-unstable: %s",
		3+seed%15, seed%4, []string{"suspend", "down", "down"}[seed%3], []string{"off", "on"}[seed%2])
	return simulator.New("mix").Set(fmt.Sprintf("cluster: {nodes: %d, split-brain-resolver: {%s}, %s}", 2+seed%6, rules,
		"detection: {after: 2s, spread: 2s, heal: 1s}, network: {latency: 1ms, jitter: 20ms}")).
		At(10*sec, simulator.PartitionRandomly()).
		At(5*sec, simulator.Repeat(4, 10*sec, simulator.Within(20*sec, anything)), simulator.Repeat(4, 10*sec, simulator.Within(20*sec, anything))).
		Build(seed)
}

// No mix of faults breaks a promise of lease-majority.
func TestRun_NoMixOfNemesesBreaksAPromise(t *testing.T) {
	simulator.Run(t, mix{}, simulator.Seeds(1, 2000))
}
