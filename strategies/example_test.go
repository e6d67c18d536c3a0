package strategies_test

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// A strategy is looked up by the key of the configuration, with the settings of all of them.
func ExampleNew() {
	settings := strategies.DefaultSettings()
	settings.StaticQuorum.QuorumSize = 3
	s, err := strategies.New("static-quorum", settings)
	fmt.Printf("%+v %v\n", s, err)

	_, err = strategies.New("static-quorom", settings)
	fmt.Println(err)
	// Output:
	// {QuorumSize:3 Role:} <nil>
	// unknown strategy "static-quorom": known are down-all, keep-majority, keep-oldest, keep-referee, lease-majority, static-quorum
}

// Three of five members can still see each other. n1 asks what to do.
func ExampleKeepMajority() {
	var members []sbr.Member
	for i := 1; i <= 5; i++ {
		members = append(members, sbr.Member{
			ID: sbr.ID(fmt.Sprintf("n%d", i)), Addr: fmt.Sprintf("10.0.0.%d:7946", i), Status: sbr.Up,
			Unreachable: i > 3,
		})
	}
	view := sbr.NewView("n1", members, nil, nil)
	d := sbr.Decide(strategies.KeepMajority{}, &view, 0.5)
	fmt.Println(d.Final, d.Down)
	fmt.Println(d.Reason)
	// Output:
	// down-unreachable [n4 n5]
	// 3 of 5 counted members are reachable, a majority
}
