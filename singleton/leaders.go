package singleton

import (
	"context"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// LeaderChanged names the leader: the oldest member, where a singleton is supposed to run. The singleton may
// not have started there yet.
type LeaderChanged struct {
	// ID is the member's incarnation, Name its name and Addr its address in the cluster; all empty when there
	// is no leader.
	ID   sbr.ID
	Name string
	Addr string
}

// RoleLeaderChanged is LeaderChanged among the members with a role.
type RoleLeaderChanged struct {
	Role string
	LeaderChanged
}

// Leaders sends the leader, now and after each change, until ctx ends; then the channel is closed. A slow
// reader gets the newest value only.
func Leaders(ctx context.Context, c Roster) <-chan LeaderChanged {
	return follow(ctx, c, func(p downing.Peers) LeaderChanged { return leader(p, "") })
}

// RoleLeaders is Leaders among the members with a role.
func RoleLeaders(ctx context.Context, c Roster, role string) <-chan RoleLeaderChanged {
	return follow(ctx, c, func(p downing.Peers) RoleLeaderChanged {
		return RoleLeaderChanged{role, leader(p, role)}
	})
}

func follow[T comparable](ctx context.Context, c Roster, leads func(downing.Peers) T) <-chan T {
	var told drive.Told[T]
	look := func() {
		told.Update(func(old T) (T, bool) {
			now := leads(c.Peers())
			return now, now != old
		})
	}
	context.AfterFunc(ctx, c.Follow(look))
	look()
	return drive.Changes(ctx, &told, nil, func(l T) T { return l })
}

// leader is the oldest member with a role that does not leave. An unreachable member leads until it is
// removed.
func leader(p downing.Peers, role string) LeaderChanged {
	for i := range p.List { // the oldest first
		if q := &p.List[i]; q.Status < sbr.Leaving && q.HasRole(role) {
			return LeaderChanged{ID: q.ID, Name: q.Name, Addr: q.Addr}
		}
	}
	return LeaderChanged{}
}
