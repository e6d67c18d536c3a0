package explore

import (
	"encoding/binary"
	"fmt"
	"time"
)

// walkUnrest is what a bystander notes of one member's view, to judge down-all-when-unstable: since when it has been changing, and
// since when it has not. The zero value is a view that is stable.
type walkUnrest struct {
	on          bool
	since, last time.Duration // how long ago it began, and was fed
}

// changed notes a change.
func (u walkUnrest) changed() walkUnrest {
	return walkUnrest{on: true, since: u.since}
}

// later lets time pass. A view that did not change for as long as makes it stable is at rest.
func (u walkUnrest) later(by, stable time.Duration) walkUnrest {
	if !u.on || u.last+by >= stable {
		return walkUnrest{}
	}
	u.since += by
	u.last += by
	return u
}

func (u walkUnrest) append(b []byte) []byte {
	if !u.on {
		return b
	}
	return binary.AppendVarint(binary.AppendVarint(b, int64(u.since)), int64(u.last))
}

// wrongUnrest looks at a member that downs everybody because its view keeps changing.
func (w *walker) wrongUnrest(i int, u walkUnrest) *wrong {
	if need := w.Resolver.StableAfter + w.Resolver.DownAllWhenUnstable; u.since < need {
		return &wrong{"L1", fmt.Sprintf("%s downs all because its view keeps changing, but it has not done so for %v", walkName(i), need)}
	}
	return nil
}
