package drive

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Cluster is a member's view of its cluster. *downing.Provider is one.
type Cluster interface {
	Roster
	Config() downing.Config
	Downed() <-chan struct{}
	OnDown(f func(reason string))
	Left() <-chan struct{}
	Offer(ctx context.Context, topic string, on bool) error
	Serve(topic string, f func(downing.Question)) (stop func(), err error)
	Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan downing.Answer, error)
}

// firstLook bounds how long Self waits: a provider that was not started never looks.
const firstLook = 5 * time.Second

// Roster lists the members. *downing.Provider is one.
type Roster interface {
	Peers() downing.Peers
	Follow(f func()) (stop func())
}

// Self returns this member. A provider that has just been started may not have looked at its members yet:
// Self waits for that, for firstLook at most. The error is downing.ErrNotMember.
func Self(ctx context.Context, r Roster) (*downing.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	var self *downing.Peer
	if !Await(ctx, r, func(p downing.Peers) bool { self = p.Find(p.Self); return self != nil }) {
		return nil, downing.ErrNotMember
	}
	return self, nil
}

// Await waits until wanted is true of the members; false: ctx has ended.
func Await(ctx context.Context, r Roster, wanted func(downing.Peers) bool) bool {
	changed := make(chan struct{}, 1)
	defer r.Follow(func() {
		select {
		case changed <- struct{}{}:
		default: // a change is pending already
		}
	})()
	for !wanted(r.Peers()) {
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Margins returns, for each removed member that offered the topic, how long a machine that begins now has to
// wait. Sorted by ID. A wall clock that is set ahead makes it no shorter.
func Margins(p downing.Peers, topic string, margin time.Duration) (gone []slot.Departure) {
	for _, d := range p.Gone {
		if left := margin - time.Since(d.At); left > 0 && d.MayServe(topic) {
			gone = append(gone, slot.Departure{ID: d.ID, Until: left})
		}
	}
	slices.SortFunc(gone, func(a, b slot.Departure) int { return cmp.Compare(a.ID, b.ID) })
	return gone
}

// Closed reports whether a channel is closed, on which nothing is ever sent.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
