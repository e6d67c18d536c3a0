package allocation_test

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

func Example() {
	allocator, err := allocation.New("orders", []string{"a", "b", "c", "d"}, allocation.DefaultConfig())
	if err != nil {
		panic(err)
	}
	current := map[string]allocation.Placement{} // by shard
	carryOut := func(members []allocation.Member) {
		for moves := allocator.Next(members, current); len(moves) > 0; moves = allocator.Next(members, current) {
			for _, m := range moves {
				fmt.Printf("%s: %q to %s, %s\n", m.Shard, m.From, m.To, m.Reason)
				// a coordinator sets To first, and Owner when it has arrived
				current[m.Shard] = allocation.Placement{Owner: m.To}
			}
		}
	}

	members := []allocation.Member{{ID: "n1#k3", Name: "n1"}, {ID: "n2#p9", Name: "n2"}}
	carryOut(members)
	fmt.Println("n2 leaves")
	members[1].Leaving = true
	carryOut(members)
	// Output:
	// c: "" to n2#p9, unowned
	// b: "" to n2#p9, unowned
	// a: "" to n1#k3, unowned
	// d: "" to n1#k3, unowned
	// n2 leaves
	// c: "n2#p9" to n1#k3, owner-leaves
	// b: "n2#p9" to n1#k3, owner-leaves
}
