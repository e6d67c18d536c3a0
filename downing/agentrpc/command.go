package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
)

// command runs requests on a connection of their own: an agent works through those of one connection in
// order, and some take long.
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
	if name != "" { // otherwise any agent that answers there
		addr = name + "/" + addr
	}
	return a.command(ctx, func(ctx context.Context, l *link) error {
		return l.do(ctx, func(c *client.RPCClient) error {
			_, err := c.Join([]string{addr}, false) // without the old user events
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

// Leave implements downing.Agent. An agent that hangs up instead of an answer has ended, which it does after
// it has left.
func (a *Agent) Leave(ctx context.Context) error {
	return a.command(ctx, func(ctx context.Context, l *link) error {
		err := l.do(ctx, func(c *client.RPCClient) error { return c.Leave() })
		if ctx.Err() == nil && errors.Is(err, downing.ErrAgentClosed) {
			return nil
		}
		return err
	})
}

// tagged reports whether setting and removing would change nothing.
func tagged(has, set map[string]string, remove []string) bool {
	then := make(map[string]string, len(has)+len(set))
	maps.Copy(then, has)
	for _, key := range remove {
		delete(then, key)
	}
	maps.Copy(then, set)
	return maps.Equal(then, has)
}

// Tag implements downing.Agent: it sets tags and reads them back. One at a time: the agent reads all, changes
// some and writes all.
func (a *Agent) Tag(ctx context.Context, set map[string]string, remove []string) error {
	select {
	case a.tagging <- struct{}{}:
		defer func() { <-a.tagging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	defer a.readSoon()
	return a.command(ctx, func(ctx context.Context, l *link) error {
		if err := l.do(ctx, func(c *client.RPCClient) error { return c.UpdateTags(set, remove) }); err != nil {
			return err
		}
		list, err := a.readMembers(ctx, l)
		if err != nil {
			return err
		}
		self, _ := find(list, a.roster.self)
		if !tagged(self.Tags, set, remove) {
			return fmt.Errorf("node %s has not got its tags: it has %d others", a.roster.self, len(self.Tags))
		}
		return nil
	})
}
