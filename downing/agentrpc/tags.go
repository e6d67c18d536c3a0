package agentrpc

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/serf/client"
)

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
