package walktest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

func canon(write func(c *walktest.Canon)) []byte {
	var c walktest.Canon
	c.Horizon = time.Minute
	write(&c)
	return c.Append(nil)
}

func TestCanon_OnlyTheOrderOfNumbersCounts(t *testing.T) {
	orders := func(numbers ...uint64) []byte {
		return canon(func(c *walktest.Canon) {
			for _, n := range numbers {
				c.Order(0, n)
			}
			c.Order(1, 1) // of another shard
		})
	}
	require.Equal(t, orders(3, 5), orders(3, 9))
	require.NotEqual(t, orders(3, 5), orders(5, 3))
	require.NotEqual(t, orders(3, 5), orders(5, 5))
	require.NotEqual(t, orders(0, 5), orders(3, 5), "none is not a number")
	require.NotEqual(t, orders(3, 5), orders(3, message.Number(2, 5)), "an older coordinator may still give numbers between them")
}

func TestCanon_TimesAreDistances(t *testing.T) {
	due := func(at, now time.Duration) []byte { return canon(func(c *walktest.Canon) { c.Due(at, now) }) }
	require.Equal(t, due(5*time.Second, 3*time.Second), due(4*time.Second, 2*time.Second))
	require.Equal(t, due(0, time.Second), due(0, time.Hour), "what is past is past")
	require.Equal(t, due(time.Hour, 0), due(2*time.Hour, 0), "what is too far off is all the same")
	require.NotEqual(t, due(5*time.Second, 3*time.Second), due(6*time.Second, 3*time.Second))
}

func TestCanon_MessagesAreToldApart(t *testing.T) {
	base := message.Message{Kind: message.State, Term: 1, Seq: 4, Full: true, Next: 2, Entries: []message.Entry{{Shard: 0, Phase: slot.Active, Number: 7, Seen: 7}}}
	written := func(m message.Message) []byte { return canon(func(c *walktest.Canon) { c.Message(&m, 1, 2) }) }
	later := base
	later.Seq, later.Number = 9, 3
	require.Equal(t, written(base), written(later), "the numbers of questions and reports are not compared with anything here")
	for _, change := range []func(m *message.Message){
		func(m *message.Message) { m.Term = 2 },
		func(m *message.Message) { m.Leaving = true },
		func(m *message.Message) { m.Wait = time.Second },
		func(m *message.Message) {
			m.Entries = []message.Entry{{Shard: 0, Phase: slot.Stopping, Number: 7, Seen: 7}}
		},
		func(m *message.Message) {
			m.Entries = []message.Entry{{Shard: 0, Phase: slot.Active, Number: 7, Seen: 8}}
		},
	} {
		other := base
		change(&other)
		require.NotEqual(t, written(base), written(other), "%+v", other)
	}
}
