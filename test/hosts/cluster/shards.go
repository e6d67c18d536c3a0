//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/sharding"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// Shards lets test/hosts/shardhost run on the hosts instead of `sbr agent`: a Serf node of its own with
// shards that write to a ledger.
type Shards struct {
	// Program is test/hosts/shardhost.
	Program string
	// Type names the shards, Count is how many there are.
	Type  string
	Count int
	// Guard lets them run: ByMembers or ByBoth.
	Guard Guard
	// Ledger is the URL of what they write to, Every how long a run works before each write.
	Ledger string
	Every  time.Duration
}

// Resources are what the shards write to, one each.
func (s *Shards) Resources() (all []string) {
	for _, name := range sharding.Numbered(s.Count) {
		all = append(all, s.Type+"-"+name)
	}
	return all
}

// leases are the leases that the members need beside the resolver's.
func (s *Shards) leases() []string {
	if s == nil || s.Guard == ByMembers {
		return nil
	}
	all := []string{System + "-shards-" + s.Type}
	for _, name := range sharding.Numbered(s.Count) {
		all = append(all, System+"-shard-"+s.Type+"-"+name)
	}
	return all
}

// command is what runs on a host.
func (s *Shards) command(c *Cluster, h *lab.Host, config string) process.Command {
	args := []string{
		"--config", config, "--node", c.options.nodeOn(h.Name()), "--bind", h.At(gossipPort), "--join", strings.Join(c.othersThan(h), ","),
		"--hooks", h.File("hooks.txt"), "--ledger", s.Ledger, "--type", s.Type, "--shards", strconv.Itoa(s.Count), "--every", s.Every.String(),
	}
	if s.Guard == ByBoth {
		args = append(args, "--leases")
	}
	return process.Command{Name: "shardhost", Program: s.Program, Args: args}
}

// on counts the shards of each member, by name.
func on(t *sharding.Table) map[string]int {
	count := make(map[string]int)
	for i := range t.Shards {
		count[t.Shards[i].Name]++
	}
	return count
}

// Shards asks a member what it knows of the shards.
func (m *Member) Shards(ctx context.Context) (t sharding.Table, err error) {
	err = m.ask(ctx, "shards", &t)
	return t, err
}

// shardsCalm is for how long nothing may have changed: a move for the sake of balance follows the last one
// within less.
const shardsCalm = 1500 * time.Millisecond

// WaitShards returns once one member coordinates and knows that every shard runs, spread as evenly as is
// demanded, and nothing moves any more. It returns the coordinator's name and the owners of the shards.
func (c *Cluster) WaitShards(ctx context.Context) (coordinator string, seen sharding.Table, err error) {
	var since time.Time
	var last string
	err = await(ctx, func() error {
		name, now, err := c.coordinator(ctx)
		if err == nil {
			err = c.options.Shards.settled(&now, len(c.running()))
		}
		look := fmt.Sprint(name, now.Shards)
		if err != nil || look != last {
			since, last = time.Now(), look
		}
		if err == nil && time.Since(since) < shardsCalm {
			err = errors.New("cluster: shards have just moved")
		}
		coordinator, seen = name, now
		return err
	})
	return coordinator, seen, err
}

// running are the members that run, paused or not.
func (c *Cluster) running() []*Member {
	return slices.DeleteFunc(c.Members(), func(m *Member) bool { return !m.Running() })
}

// settled says what is missing until all shards run and nothing moves any more.
func (s *Shards) settled(seen *sharding.Table, members int) error {
	running := 0
	for i := range seen.Shards {
		if seen.Shards[i].State == sharding.Running {
			running++
		}
	}
	if !seen.Recovered || running != s.Count || len(seen.Silent)+len(seen.Strangers) > 0 {
		return fmt.Errorf("cluster: not all of %d shards run: recovered %v, running %d, silent %v, strangers %v",
			s.Count, seen.Recovered, running, seen.Silent, seen.Strangers)
	}
	share := (s.Count + members - 1) / members
	for name, n := range on(seen) {
		if name == "" || n > share+1 {
			return fmt.Errorf("cluster: %d shards are on %q, of %d on %d members", n, name, s.Count, members)
		}
	}
	return nil
}

// coordinator finds the member that says that it coordinates, and what it knows.
func (c *Cluster) coordinator(ctx context.Context) (name string, seen sharding.Table, err error) {
	for _, m := range c.running() {
		if m.SBR.Process().Paused() {
			continue
		}
		s, err := m.Shards(ctx)
		if err != nil {
			return "", seen, err
		}
		if !s.Recovered {
			continue
		}
		if name != "" {
			return "", seen, fmt.Errorf("cluster: %s and %s both coordinate", name, m.Host.Name())
		}
		name, seen = m.Host.Name(), s
	}
	if name == "" {
		return "", seen, errors.New("cluster: nobody coordinates the shards")
	}
	return name, seen, nil
}

// drainTimeout bounds Drain.
const drainTimeout = 30 * time.Second

// Drain lets the member hand all its shards over and take part again. It returns when it does.
func (m *Member) Drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, pageURL+"/drain", nil)
	if err != nil {
		return err
	}
	response, err := m.Host.Client().Do(request)
	if err != nil {
		return fmt.Errorf("cluster: draining %s: %w", m.Host.Name(), err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cluster: draining %s: %s", m.Host.Name(), response.Status)
	}
	return nil
}

// LeaveUnasked makes the node of the member's host leave without its shards being handed over first, and ends
// what runs there: an application that forgets to.
func (m *Member) LeaveUnasked(ctx context.Context) error { return m.leave(ctx, syscall.SIGINT) }
