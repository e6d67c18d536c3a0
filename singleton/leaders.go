package singleton

import (
	"context"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// LeaderChanged says which member leads: the oldest one, where what runs once is supposed to run. It may not have started there yet.
type LeaderChanged struct {
	// ID is the member's incarnation, Name its name and Addr its address in the cluster; all empty when there is nobody.
	ID   sbr.ID
	Name string
	Addr string
}

// RoleLeaderChanged is LeaderChanged among the members with a role.
type RoleLeaderChanged struct {
	Role string
	LeaderChanged
}

// Leaders tells who leads, now and after each change, until ctx ends; then the channel is closed. Who reads slowly gets the newest only.
func Leaders(ctx context.Context, c Roster) <-chan LeaderChanged {
	return follow(ctx, c, func(l LeaderChanged) LeaderChanged { return l }, "")
}

// RoleLeaders is Leaders among the members with a role.
func RoleLeaders(ctx context.Context, c Roster, role string) <-chan RoleLeaderChanged {
	return follow(ctx, c, func(l LeaderChanged) RoleLeaderChanged { return RoleLeaderChanged{Role: role, LeaderChanged: l} }, role)
}

func follow[T any](ctx context.Context, c Roster, as func(LeaderChanged) T, role string) <-chan T {
	changes := make(chan T, 1)
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	stop := c.Follow(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(changes)
		defer stop()
		var last LeaderChanged
		told := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-wake:
			}
			next := leader(c.Peers(), role)
			if told && next == last {
				continue
			}
			last, told = next, true
			replace(changes, as(next))
		}
	}()
	return changes
}

// replace puts v into a channel with room for one, in the place of what nobody has read. Only one goroutine writes to it.
func replace[T any](c chan T, v T) {
	select {
	case <-c:
	default:
	}
	c <- v
}

// leader is the oldest member that stays, with a role. One that cannot be reached leads until it is removed.
func leader(p downing.Peers, role string) LeaderChanged {
	for i := range p.List { // the oldest first
		if q := &p.List[i]; q.Status < sbr.Leaving && q.HasRole(role) {
			return LeaderChanged{ID: q.ID, Name: q.Name, Addr: q.Addr}
		}
	}
	return LeaderChanged{}
}
