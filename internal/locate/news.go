package locate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/codec"
)

// MaxEndpoint is how long an endpoint may be, in bytes.
const MaxEndpoint = 256

// maxSlots bounds what is read.
const maxSlots = 4096

// kind says what news means.
type kind byte

const (
	// newsRuns: the sender runs the slots, reached at its endpoint. As an answer it lists all requested slots
	// that the sender runs, or those before next if that is not zero.
	newsRuns kind = iota + 1
	// newsEnded: the runs of the slots are over, or must end.
	newsEnded
	// newsWhere asks for newsRuns, from the slot next on: of the listed slots, or of all if none is listed.
	newsWhere
)

var errNews = errors.New("locate: not valid news")

// news is a message between locators.
type news struct {
	kind     kind
	next     int
	entries  []entry // by slot
	endpoint string
}

// entry is one run.
type entry struct {
	slot  int
	token uint64
}

func (e entry) compare(other entry) int { return cmp.Compare(e.slot, other.slot) }

// asks reports whether a newsWhere asks for a slot.
func (n *news) asks(slot int) bool {
	_, listed := slices.BinarySearchFunc(n.entries, entry{slot: slot}, entry.compare)
	return listed || len(n.entries) == 0
}

func (n *news) encode() []byte { return codec.Append(nil, n.code) }

// code writes slots and tokens by their distance from those before.
func (n *news) code(c *codec.Coder) {
	codec.Small(c, &n.kind, newsRuns, newsWhere)
	codec.Number(c, &n.next, maxSlots)
	codec.List(c, &n.entries, entry{slot: -1}, func(prev entry, e *entry) {
		c.Index(prev.slot, &e.slot, maxSlots)
		c.After(prev.token, &e.token)
	})
	codec.Rest(c, &n.endpoint, MaxEndpoint)
}

// fit is how many entries, from the first on, one message can carry.
func (n *news) fit() int {
	return sort.Search(len(n.entries), func(i int) bool {
		part := *n
		part.next, part.entries = maxSlots, n.entries[:i+1]
		return len(part.encode()) > downing.MaxTalk
	})
}

// decodeNews reads exactly what encode writes.
func decodeNews(b []byte) (n news, err error) {
	if err := codec.Read(b, n.code); err != nil {
		return news{}, fmt.Errorf("%w: %w", errNews, err)
	}
	return n, nil
}
