package conduct

import (
	"context"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// firstLook bounds how long Self waits: a provider that was not started never looks.
const firstLook = 5 * time.Second

// Roster is who is there. *downing.Provider has it.
type Roster interface {
	Peers() downing.Peers
	Follow(f func()) (stop func())
}

// Self returns this member. A provider that has just been started may not have looked at its members yet: that is waited for, for some seconds at most. The
// error is downing.ErrNotMember.
func Self(ctx context.Context, r Roster) (*downing.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer r.Follow(func() {
		select {
		case changed <- struct{}{}:
		default: // one is there that nobody has taken yet
		}
	})()
	for {
		peers := r.Peers()
		if self := peers.Find(peers.Self); self != nil {
			return self, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, downing.ErrNotMember
		}
	}
}
