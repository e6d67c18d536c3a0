package locate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/serf-sbr/serf-sbr/downing"
)

// MaxEndpoint is how long an endpoint may be, in bytes.
const MaxEndpoint = 256

// maxSlots bounds what is read.
const maxSlots = 4096

// kind says what news means.
type kind byte

const (
	// newsRuns: the sender runs the slots, reached at its endpoint. As an answer it lists all that it was asked
	// for, or those before next if that is not zero.
	newsRuns kind = iota + 1
	// newsEnded: the runs of the slots are over, or must end.
	newsEnded
	// newsWhere asks for newsRuns, from the slot next on: of the slots that are listed, or of all if none is.
	newsWhere
)

var errNews = errors.New("locate: not valid news")

// news is what locators say to each other.
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

// encode writes slots and tokens by their distance from those before.
func (n *news) encode() []byte {
	b := binary.AppendUvarint([]byte{byte(n.kind)}, uint64(n.next))
	b = binary.AppendUvarint(b, uint64(len(n.entries)))
	before := entry{slot: -1}
	for _, e := range n.entries {
		b = binary.AppendUvarint(b, uint64(e.slot-before.slot-1))
		b = binary.AppendVarint(b, int64(e.token-before.token))
		before = e
	}
	return append(b, n.endpoint...)
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
	if len(b) == 0 || kind(b[0]) < newsRuns || kind(b[0]) > newsWhere {
		return news{}, fmt.Errorf("%w: unknown kind", errNews)
	}
	r := bytes.NewReader(b[1:])
	next, err1 := binary.ReadUvarint(r)
	count, err2 := binary.ReadUvarint(r)
	if err := errors.Join(err1, err2); err != nil || next > maxSlots || count > uint64(r.Len()) {
		return news{}, fmt.Errorf("%w: cut off, or too large", errNews)
	}
	n = news{kind: kind(b[0]), next: int(next)}
	before := entry{slot: -1}
	for range count {
		skipped, err1 := binary.ReadUvarint(r)
		more, err2 := binary.ReadVarint(r)
		if err := errors.Join(err1, err2); err != nil || skipped >= maxSlots {
			return news{}, fmt.Errorf("%w: cut off, or too large", errNews)
		}
		e := entry{before.slot + 1 + int(skipped), before.token + uint64(more)}
		if e.slot >= maxSlots || e.token > math.MaxInt64 {
			return news{}, fmt.Errorf("%w: a number is too large", errNews)
		}
		n.entries, before = append(n.entries, e), e
	}
	if r.Len() > MaxEndpoint {
		return news{}, fmt.Errorf("%w: the endpoint has %d bytes", errNews, r.Len())
	}
	n.endpoint = string(b[len(b)-r.Len():])
	if !bytes.Equal(n.encode(), b) {
		return news{}, fmt.Errorf("%w: not as it would be written", errNews)
	}
	return n, nil
}
