package agentrpc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/serf/client"
)

// tags are what Tag has set and deleted, for an agent that forgets.
type tags struct {
	mu   sync.Mutex
	want map[string]string
	gone map[string]struct{}
}

func (t *tags) add(set map[string]string, remove []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.want == nil {
		t.want, t.gone = make(map[string]string), make(map[string]struct{})
	}
	for _, key := range remove {
		delete(t.want, key)
		t.gone[key] = struct{}{}
	}
	for key, value := range set {
		delete(t.gone, key)
		t.want[key] = value
	}
}

func (t *tags) all() (set map[string]string, remove []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.want), slices.Sorted(maps.Keys(t.gone))
}

// missing reports whether a node's tags are not what they should be.
func (t *tags) missing(has map[string]string) bool {
	set, remove := t.all()
	return !tagged(has, set, remove)
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

// Tag implements downing.Agent. What it has set is set again when the agent restarts.
func (a *Agent) Tag(ctx context.Context, set map[string]string, remove []string) error {
	if err := a.setTags(ctx, set, remove); err != nil {
		return err
	}
	a.tags.add(set, remove)
	a.readSoon()
	return nil
}

// retag sets again what an agent has forgotten.
func (a *Agent) retag(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tagTime(a.opts.Timeout))
	defer cancel()
	set, remove := a.tags.all()
	return a.setTags(ctx, set, remove)
}

// setTags sets tags and reads them back. One at a time: the agent reads all, changes some and writes all.
func (a *Agent) setTags(ctx context.Context, set map[string]string, remove []string) error {
	select {
	case a.tagging <- struct{}{}:
		defer func() { <-a.tagging }()
	case <-ctx.Done():
		return ctx.Err()
	}
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
