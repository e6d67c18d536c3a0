package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// command runs requests on a connection of their own: an agent works through those of one connection in order, and some take long.
func (a *Agent) command(ctx context.Context, f func(context.Context, *link) error) error {
	ctx, cancel := a.unlessClosed(ctx)
	defer cancel()
	l, err := dial(ctx, &a.opts)
	if err == nil {
		err = f(ctx, l)
		l.close()
	}
	if err != nil {
		return fmt.Errorf("the Serf agent at %s: %w", a.opts.Addr, err)
	}
	return nil
}

// Join implements downing.Agent.
func (a *Agent) Join(ctx context.Context, name, addr string) error {
	return a.join(ctx, []string{joinAddress(name, addr)})
}

func (a *Agent) join(ctx context.Context, addrs []string) error {
	return a.command(ctx, func(ctx context.Context, l *link) error {
		return l.do(ctx, func(c *client.RPCClient) error {
			_, err := c.Join(addrs, false) // without the old user events
			return err
		})
	})
}

// Remove implements downing.Agent. A member that only an earlier life of the agent knew is forgotten.
func (a *Agent) Remove(ctx context.Context, name string) (removed bool, err error) {
	err = a.command(ctx, func(ctx context.Context, l *link) error {
		list, err := a.readMembers(ctx, l)
		if err != nil {
			return err
		}
		m, listed := find(list, name)
		switch {
		case !listed:
			removed = a.roster.forget(name)
			return nil
		case m.Status != serf.StatusFailed:
			return nil
		}
		removed = true
		return l.do(ctx, func(c *client.RPCClient) error { return c.ForceLeave(name) })
	})
	if removed {
		a.readSoon()
		a.changed()
	}
	return removed && err == nil, err
}

// Leave implements downing.Agent. An agent that hangs up instead of an answer has ended, which it does after it has left.
func (a *Agent) Leave(ctx context.Context) error {
	return a.command(ctx, func(ctx context.Context, l *link) error {
		err := l.do(ctx, func(c *client.RPCClient) error { return c.Leave() })
		if ctx.Err() == nil && errors.Is(err, downing.ErrAgentClosed) {
			return nil
		}
		return err
	})
}

const (
	rejoinTries = 12
	rejoinAtOne = 3 // addresses in one attempt
	rejoinTime  = 15 * time.Second
	rejoinPause = 5 * time.Second // at most
)

// rejoin makes an agent that has forgotten the others join those that were alive. It works beside everything else.
func (a *Agent) rejoin() {
	if len(a.roster.toJoin()) == 0 || !a.rejoining.CompareAndSwap(false, true) {
		return
	}
	a.spawn(func() {
		defer a.rejoining.Store(false)
		pause := pauses()
		pause.MaxInterval = rejoinPause
		for range rejoinTries {
			addrs := a.roster.toJoin()
			if len(addrs) == 0 {
				return
			}
			rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
			addrs = addrs[:min(len(addrs), rejoinAtOne)]
			ctx, cancel := context.WithTimeout(a.ctx, rejoinTime)
			err := a.join(ctx, addrs)
			cancel()
			if err != nil {
				a.log.Warn("sbr: the Serf agent has forgotten the others and could not join them, trying again", "addrs", addrs, "error", err)
			} else {
				a.log.Info("sbr: the Serf agent had forgotten the others and was made to join them", "addrs", addrs)
				a.readSoon()
			}
			if sleep.For(a.ctx, pause.NextBackOff()) != nil {
				return
			}
		}
	})
}

// tagTime bounds setting tags again: the agent waits for a broadcast.
func tagTime(request time.Duration) time.Duration { return request + 5*time.Second }
