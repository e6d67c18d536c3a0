package hosts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

const (
	// settled is for how long the expectations must have been met before a run is ended early.
	settled = 5 * time.Second
	// leeway is what hosts may take longer than the file says: processes start and end, and after a heal Serf
	// looks for lost members only every half a minute.
	leeway = 60 * time.Second
)

// player plays one file.
type player struct {
	*rig
	s     *scenario.Scenario
	names *scenario.Names
	top   *topology
	began time.Time
	agend []entry
	hurt  map[string]int // by node: the step, counted from 1, whose store fault it suffers
}

// entry is something to do at a time of the file.
type entry struct {
	at time.Duration
	do func() error
}

// play plays a file once and returns which of its expectations are not met. A broken promise fails the test.
func play(t *testing.T, s *scenario.Scenario, m mode) []string {
	t.Helper()
	s = s.Drawn(1) // ranges are what the first seed makes of them
	p := &player{s: s, names: s.Names(), top: newTopology(), hurt: make(map[string]int)}
	o := cluster.Options{Settings: settingsOf(t, s),
		Profile: strings.TrimPrefix(s.Cluster.Detection.Profile, "serf-"), Roles: make(map[string][]string)}
	for _, n := range p.names.Nodes {
		o.Roles[n.Name] = n.Roles
		o.Hosts = append(o.Hosts, n.Name)
	}
	start := p.names.Start
	o.Hosts, o.Later = o.Hosts[:start], o.Hosts[start:]
	if s.Cluster.SplitBrainResolver.ActiveStrategy == "keep-oldest" {
		o.Stagger = 1100 * time.Millisecond // ages are whole seconds
	}
	// In the model a node that is started in a cut finds no member that the verdict leaves in, and waits.
	// Hosts find each other, and are a cluster unless they are too few for one.
	o.Settings = o.Settings.With("min-members", max(s.Cluster.SplitBrainResolver.MinMembers, start/2+1))
	p.rig = newRig(t, m, o)
	defer p.end()
	require.NoError(t, p.run())
	failures := p.wait()
	p.judge()
	return failures
}

// end takes the rig down before the next play begins.
func (p *player) end() {
	p.Stop()
	if p.t.Failed() {
		p.lab.Keep()
	}
	require.NoError(p.t, p.lab.Close())
}

// settingsOf are those of the file, faster.
func settingsOf(t *testing.T, s *scenario.Scenario) cluster.Settings {
	t.Helper()
	times := s.Cluster.Lease.Settings(config.ImplementationKubernetes)
	var settings cluster.Settings
	raw, err := yaml.Marshal(s.Cluster.SplitBrainResolver)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &settings.Resolver))
	faster(settings.Resolver)
	heartbeat := "infinite"
	if times.HeartbeatTimeout < 1000*time.Hour {
		heartbeat = (times.HeartbeatTimeout / speed).String()
	}
	settings.Lease = map[string]any{
		"heartbeat-timeout": heartbeat, "heartbeat-interval": (times.HeartbeatInterval / speed).String(),
		"lease-operation-timeout": (times.OperationTimeout / speed).String(),
	}
	settings.Serf = map[string]any{"rpc-timeout": (15 * time.Second / speed).String()}
	return settings
}

// faster shortens all durations of a block.
func faster(block map[string]any) {
	for key, value := range block {
		switch v := value.(type) {
		case map[string]any:
			faster(v)
		case string:
			if d, err := time.ParseDuration(v); err == nil {
				block[key] = (d / speed).String()
			}
		}
	}
}

func (p *player) after(at time.Duration, do func() error) {
	p.agend = append(p.agend, entry{at, do})
	slices.SortStableFunc(p.agend, func(a, b entry) int { return int(a.at - b.at) })
}

// run plays the steps, and what they have put on the agenda.
func (p *player) run() error {
	p.began = time.Now()
	for i := range p.s.Steps {
		st := &p.s.Steps[i]
		p.after(st.At.From, func() error {
			if err := p.step(i+1, st); err != nil {
				return fmt.Errorf("steps[%d]: %w", i, err)
			}
			return nil
		})
	}
	for len(p.agend) > 0 {
		next := p.agend[0]
		p.agend = p.agend[1:]
		time.Sleep(time.Until(p.began.Add(next.at / speed)))
		if err := next.do(); err != nil {
			return err
		}
	}
	return nil
}

// step does what one step says; number tells it from others.
func (p *player) step(number int, st *scenario.Step) error {
	ctx := p.within(time.Minute)
	switch {
	case st.Partition != nil:
		groups := make([][]string, len(*st.Partition))
		for i, g := range *st.Partition {
			groups[i] = p.expand(g)
		}
		p.top.partition(groups)
		return p.links()
	case st.Cut != nil:
		p.top.cutOneWay((*st.Cut)[0], (*st.Cut)[1])
		p.top.cutOneWay((*st.Cut)[1], (*st.Cut)[0])
		return p.links()
	case st.CutOneWay != nil:
		p.top.cutOneWay((*st.CutOneWay)[0], (*st.CutOneWay)[1])
		return p.links()
	case st.Heal != nil:
		p.top.heal()
		return p.links()
	case st.Crash != nil:
		p.Member(*st.Crash).Kill()
		return nil
	case st.Restart != nil:
		return p.Member(*st.Restart).Restart(ctx)
	case st.Join != nil:
		_, err := p.Boot(*st.Join)
		return err
	case st.Leave != nil:
		return p.Member(*st.Leave).Leave(ctx)
	case st.Down != nil:
		return p.Down(ctx, p.Member(*st.By), *st.Down)
	case st.Pause != nil:
		m := p.Member(*st.Pause)
		p.after(st.At.From+st.For.From, m.Resume)
		return m.Pause(ctx)
	case st.LeaseStore != nil:
		return p.cutStore(number, st)
	default:
		return errors.New("this step is not played on hosts")
	}
}

func (p *player) links() error { return p.lab.SetLinks(p.top.open(p.lab.Store().Name())) }

// expand returns the nodes that a list of names and zones stands for.
func (p *player) expand(list []string) (names []string) {
	for _, i := range p.names.Expand(list) {
		names = append(names, p.names.Nodes[i].Name)
	}
	return names
}

// cutStore cuts nodes off from the store and arranges the end. A later fault of the same node outlives the
// end of an earlier one.
func (p *player) cutStore(number int, st *scenario.Step) error {
	hit := p.s.Members()
	if st.Nodes != nil {
		hit = p.expand(*st.Nodes)
	}
	for _, name := range hit {
		p.hurt[name] = number
	}
	if st.For != nil {
		p.after(st.At.From+st.For.From, func() error {
			return p.lab.HealStore(slices.DeleteFunc(slices.Clone(hit),
				func(name string) bool { return p.hurt[name] != number })...)
		})
	}
	return p.lab.CutStore(hit...)
}

// wait returns the expectations that are not met when the file ends; it ends early once all have been met for
// a while.
func (p *player) wait() (failures []string) {
	end := p.began.Add(p.s.RunFor/speed + leeway)
	var since time.Time
	for {
		failures = p.unmet()
		switch {
		case len(failures) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > settled:
			return nil
		}
		if time.Now().After(end) {
			return failures
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// unmet says which expectations are not met now. Those about times and single decisions are left to the tiers
// in virtual time.
func (p *player) unmet() (failures []string) {
	up, down, late := p.standing()
	if late != "" {
		failures = append(failures, late)
	}
	file := *p.s
	file.Expect.ResolvedWithin, file.Expect.Decisions = nil, nil
	return append(failures, file.Unmet(&scenario.Result{Survivors: up, Down: down, LeaseHolder: p.holder()})...)
}

// standing are the nodes that run and were not downed, and the downed ones; late says who is still at it.
func (p *player) standing() (up, down []string, late string) {
	for _, m := range p.Members() {
		name := m.Host.Name()
		if m.Running() {
			if m.SBR.Process().Paused() || !p.waits(m) {
				up = append(up, name)
			}
			continue
		}
		if exits := m.SBR.Exits(); len(exits) > 0 && exits[len(exits)-1].Code == downing.ExitDowned {
			down = append(down, name)
		}
	}
	if p.promised() { // of other strategies, and of suspending, nobody says that there is one side in the end
		late = p.unresolved()
	}
	return up, down, late
}

// waits reports whether a member has started and waits for others: it is neither up nor down.
func (p *player) waits(m *cluster.Member) bool {
	s, err := m.Status(p.t.Context())
	return err != nil || cluster.Waits(&s)
}

// promised reports whether the file is about the strategy whose promise it is that one side stays.
func (p *player) promised() bool {
	r := &p.s.Cluster.SplitBrainResolver
	return strings.EqualFold(r.ActiveStrategy, "lease-majority") && r.LeaseMajority.WhenLeaseUnknown == "down"
}

// unresolved says why what is up is not one side; empty: it is.
func (p *player) unresolved() string {
	if err := p.OneSide(p.t.Context()); err != nil {
		return err.Error()
	}
	return ""
}

// holder is the name of the holder of the lease, empty for none.
func (p *player) holder() string {
	entries := p.Chain().Entries()
	if len(entries) == 0 {
		return ""
	}
	return downing.NameOf(sbr.ID(entries[len(entries)-1].Holder))
}

// judge fails the test if a promise is broken.
func (p *player) judge() {
	p.t.Helper()
	p.verify()
	if p.promised() {
		ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(p.t, p.TwoSides(ctx))
	}
}
