package serfnet_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
)

// Two real Serf nodes lose sight of each other. In a test, do this in a
// testing/synctest bubble with the default timings: a minute then takes
// milliseconds.
func Example() {
	network := memnet.New(memnet.Config{})
	nodes, err := serfnet.StartAll(network, func(_ string, c *serf.Config) {
		c.MemberlistConfig = memberlist.DefaultLocalConfig()
		c.MemberlistConfig.ProbeInterval = 100 * time.Millisecond
		c.MemberlistConfig.ProbeTimeout = 50 * time.Millisecond
	}, "n1", "n2")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer serfnet.ShutdownAll(nodes...)
	fmt.Println("n2 knows", nodes[1].NumNodes(), "nodes")

	if err := network.Cut("n1", "n2"); err != nil {
		fmt.Println(err)
		return
	}
	for slices.ContainsFunc(nodes[1].Members(), func(m serf.Member) bool {
		return m.Name == "n1" && m.Status == serf.StatusAlive
	}) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("n2 has failed n1; both run on")
	// Output:
	// n2 knows 2 nodes
	// n2 has failed n1; both run on
}
