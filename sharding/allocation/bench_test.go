package allocation_test

import (
	"fmt"
	"testing"

	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// What a coordinator pays for one look: from nothing, when nothing is to be done, after one member is gone,
// after one has joined.
func BenchmarkNext(b *testing.B) {
	for _, size := range []struct{ shards, members int }{{1000, 20}, {4096, 500}} {
		a, members := allocator(b, allocation.DefaultConfig(), shardNames(size.shards)), nodes(size.members)
		settled, _ := settle(b, a, members, nil)
		for _, state := range []struct {
			name    string
			members []allocation.Member
			current places
		}{
			{"empty", members, nil},
			{"settled", members, settled},
			{"gone", members[1:], settled},
			{"joined", nodes(size.members + 1), settled},
		} {
			b.Run(fmt.Sprintf("%dx%d/%s", size.shards, size.members, state.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a.Next(state.members, state.current)
				}
			})
		}
	}
}
