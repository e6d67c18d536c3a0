package message_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

const (
	n1, n2, n3 = message.Key(1), message.Key(2), message.Key(3)
	digest     = 77
)

func order(term, n uint64, from, to message.Key) *message.Message {
	number := message.Number(term, n)
	return &message.Message{Kind: message.Orders, Digest: digest, Term: term, Number: number, Orders: []message.Order{{Shard: 1, From: from, To: to, Number: number}}}
}

func TestOwners_TheNewestWordCounts(t *testing.T) {
	told := func(n uint64, k message.Key) *message.Message {
		return &message.Message{Kind: message.Places, Digest: digest, Term: 1, Number: message.Number(1, n), Owners: []message.Key{message.Nobody, k}}
	}
	state := func(n uint64) *message.Message {
		return &message.Message{Kind: message.State, Digest: digest, Term: 1, Entries: []message.Entry{{Shard: 1, Phase: slot.Active, Number: message.Number(1, n)}}}
	}
	other := order(1, 9, n1, n2)
	other.Digest++
	for name, c := range map[string]struct {
		words []*message.Message
		want  message.Key
	}{
		"an order":                            {[]*message.Message{order(1, 1, n1, n2)}, n2},
		"a later order":                       {[]*message.Message{order(1, 1, n1, n2), order(1, 2, n2, n3)}, n3},
		"orders in the wrong order":           {[]*message.Message{order(1, 2, n2, n3), order(1, 1, n1, n2)}, n3},
		"an order of an older coordinator":    {[]*message.Message{order(2, 1, n1, n2), order(1, 9, n2, n3)}, n2},
		"an order to stop says nothing":       {[]*message.Message{order(1, 1, n1, n2), order(1, 2, n3, message.Nobody)}, n2},
		"what all are told":                   {[]*message.Message{order(1, 1, n1, n2), told(5, n1)}, n1},
		"an order given after that":           {[]*message.Message{told(5, n1), order(1, 6, n1, n3)}, n3},
		"a report":                            {[]*message.Message{state(3)}, n1},
		"a report from before an order":       {[]*message.Message{order(1, 4, n1, n2), state(3)}, n2},
		"another list of shards":              {[]*message.Message{order(1, 1, n1, n3), other}, n3},
		"nothing":                             {nil, message.Nobody},
		"the owner resigns":                   {[]*message.Message{order(1, 1, n2, n1), {Kind: message.Resigned, Digest: digest}}, message.Nobody},
		"the owner resigns, and a late order": {[]*message.Message{order(1, 1, n2, n1), {Kind: message.Resigned, Digest: digest}, order(1, 1, n2, n1)}, message.Nobody},
	} {
		t.Run(name, func(t *testing.T) {
			table := message.NewOwners(3, digest)
			for _, m := range c.words {
				table.Learn(n1, m)
			}
			require.Equal(t, c.want, table.Of(1))
			require.Equal(t, message.Nobody, table.Of(2))
			require.Equal(t, message.Nobody, table.Of(99))
		})
	}
}
