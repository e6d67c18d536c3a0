package simulator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// A test of what one's own settings do in a partition. It is played with a hundred seeds; the promises are
// checked in each of them.
func Example() {
	TestPartition := func(t *testing.T) {
		s := simulator.New("three against two").
			Config(`
system: payments
split-brain-resolver:
  stable-after: 15s
  lease-majority: {acquire-lease-delay-for-minority: 6s}`).
			At(10*time.Second, simulator.Partition(simulator.Side("n1", "n2", "n3"), simulator.Side("n4", "n5"))).
			Set("expect: {survivors: [n1, n2, n3], resolved-within: 60s}")
		simulator.Run(t, s)
	}
	_ = TestPartition // go test calls it
}

// What a builder says can be written as a file, for sbr simulate.
func ExampleScenario_Build() {
	s, err := simulator.New("a zone is cut off").
		Set(`
cluster: {nodes: [{name: a1, zone: a}, {name: a2, zone: a}, {name: b1, zone: b}, {name: b2, zone: b}, {name: c1, zone: c}]}
run-for: 3m
expect: {survivors: [a1, a2, b1, b2]}`).
		At(10*time.Second, simulator.Partition(simulator.Side("a", "b"), simulator.Side("c"))).
		At(12*time.Second, simulator.StoreDown(5*time.Second, "a")).
		Build(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(scenario.Format(s)))
	// Output:
	// name: a zone is cut off
	// cluster:
	//   nodes:
	//     - {name: a1, zone: a}
	//     - {name: a2, zone: a}
	//     - {name: b1, zone: b}
	//     - {name: b2, zone: b}
	//     - {name: c1, zone: c}
	// steps:
	//   - {at: 10s, partition: [[a, b], [c]]}
	//   - {at: 12s, lease-store: down, nodes: [a], for: 5s}
	// run-for: 180s
	// expect:
	//   survivors: [a1, a2, b1, b2]
}

// Nemeses are put together from smaller ones. Each seed plans another run, and the same one each time.
func ExampleNemesis() {
	splits := simulator.Repeat(2, time.Minute,
		simulator.Flap(2, 20*time.Second, 10*time.Second, simulator.Groups(2)))
	trouble := simulator.Shuffle(
		simulator.OnRandom(1, func(name string) simulator.Nemesis { return simulator.Pause(name, 30*time.Second) }),
		simulator.StoreFaults(20*time.Second),
	)
	s, err := simulator.New("trouble").At(10*time.Second, splits,
		simulator.Within(time.Minute, trouble)).Build(7)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(scenario.Format(s)))
	// Output:
	// name: trouble
	// cluster: {nodes: 5}
	// steps:
	//   - {at: 10s, partition: [[n1, n2, n5], [n3, n4]]}
	//   - {at: 20.3s, pause: n3, for: 30s}
	//   - {at: 20.7s, heal: true}
	//   - {at: 26.8s, partition: [[n1, n2, n4], [n3, n5]]}
	//   - {at: 32.8s, heal: true}
	//   - {at: 50.3s, lease-store: lose-responses, nodes: [n1, n2, n3, n5], for: 20s}
	//   - {at: 70s, partition: [[n1, n2, n4, n5], [n3]]}
	//   - {at: 78.4s, heal: true}
	//   - {at: 83.1s, partition: [[n1, n2, n4], [n3, n5]]}
	//   - {at: 101.2s, heal: true}
	// run-for: 405.8s
}

// A nemesis of one's own is a function. Whatever it leaves to chance, it must take from the plan.
func ExamplePlan() {
	crashAllButOne := func(p *simulator.Plan) {
		spared := p.Rand().IntN(len(p.Members()))
		for i, name := range p.Members() {
			if i != spared {
				p.Play(simulator.Crash(name))
				p.Wait(5 * time.Second)
			}
		}
	}
	s, err := simulator.New("last one standing").Set("cluster: {nodes: 4}").At(10*time.Second,
		crashAllButOne).Build(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range s.Steps {
		fmt.Println(*step.At, *step.Crash)
	}
	// Output:
	// 10s n1
	// 15s n2
	// 20s n3
}

// Mistakes are named all at once; Run fails the test with them.
func ExampleScenario_Set() {
	_, err := simulator.New("typo").
		Set("cluster: {split-brain-resolver: {lease-majority: {rolle: db}}}").
		At(time.Minute, simulator.Crash("n6")).
		Build(1)
	fmt.Println(err)
	// Output:
	// scenario "typo": Set:1: cluster.split-brain-resolver.lease-majority.rolle: unknown key; the nearest known key is role
	// scenario "typo": at 1m0s: steps[0].crash: no member is called "n6"; the nearest name is n1
}
