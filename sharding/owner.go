package sharding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/locate"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// ErrNoShard is wrapped by the errors of Wait and Transport when Config.Shards has no such name.
var ErrNoShard = errors.New("sharding: there is no such shard")

// State is what callers of a shard can expect.
type State string

// The states.
const (
	// Running: it runs on its owner.
	Running State = "running"
	// Moving: nobody is known to run it, or its owner still does and has to hand over.
	Moving State = "moving"
	// Unowned and Waiting are told by a Table of the coordinator's member alone, of shards that are Moving
	// elsewhere. Unowned: nobody runs it, or was told to. Waiting: for a removal margin, for a lease, or for
	// a member that does not answer or does not stop.
	Unowned State = "unowned"
	Waiting State = "waiting"
)

// Owner says who runs a shard, as far as is known here. It changes when a run starts and when one ends; its
// owner may have just stopped.
type Owner struct {
	Shard string `json:"shard"`
	// ID is the member's incarnation, Name its name. Empty: nobody, or it is not known.
	ID   sbr.ID `json:"incarnation"`
	Name string `json:"member"`
	// Endpoint is what Config.Endpoint says there, Token the run's.
	Endpoint string `json:"endpoint"`
	Token    uint64 `json:"token"`
	State    State  `json:"state"`
}

// ShardOf returns the shard of Numbered(n) that a key belongs to: the 64-bit xxHash (XXH64, seed 0) of its
// bytes, modulo n, in decimal. That never changes, and is the same in every language. n must be at least 1.
func ShardOf(key string, n int) string {
	return strconv.FormatUint(xxhash.Sum64String(key)%uint64(n), 10)
}

// Owner returns who runs a shard; ok is false if there is no such shard. It never blocks.
func (m *Manager) Owner(shard string) (o Owner, ok bool) {
	i, ok := slices.BinarySearch(m.cfg.Shards, shard)
	if !ok {
		return Owner{}, false
	}
	owners, _ := m.owners.Get()
	return owners[i], true
}

// Wait returns who runs a shard as soon as that is known. Call it after Start. Errors: one that wraps
// ErrNoShard, one that wraps the cause of ctx, and one that says that the manager was stopped.
func (m *Manager) Wait(ctx context.Context, shard string) (Owner, error) {
	p, err := m.place(shard)
	if err != nil {
		return Owner{}, err
	}
	at, err := p.Wait(ctx, 0)
	if err != nil {
		return Owner{}, fmt.Errorf("shard %s of %s: %w", shard, m.cfg.Type, err)
	}
	return owner(shard, at, message.Nobody), nil
}

// place is where a shard runs.
func (m *Manager) place(shard string) (locate.Slot, error) {
	i, ok := slices.BinarySearch(m.cfg.Shards, shard)
	l := m.locator.Load()
	switch {
	case !ok:
		return locate.Slot{}, fmt.Errorf("%w: %q of %s", ErrNoShard, shard, m.cfg.Type)
	case l == nil:
		return locate.Slot{}, fmt.Errorf("shards of %s: the manager was not started", m.cfg.Type)
	}
	return l.Slot(i), nil
}

// owner says who runs a shard, by who does and by who shall: Nobody if that is not known.
func owner(shard string, at locate.Location, shall message.Key) Owner {
	o := Owner{Shard: shard, ID: at.ID, Name: at.Name, Endpoint: at.Endpoint, Token: at.Token, State: Running}
	if !at.Known() || shall != message.Nobody && shall != message.KeyOf(at.ID) {
		o.State = Moving
	}
	return o
}

// Owners lists who runs what, by shard.
func (m *Manager) Owners() []Owner {
	owners, _ := m.owners.Get()
	return slices.Clone(owners)
}

// Changes tells all owners, now and after each change, until ctx ends; then the channel is closed. Who reads slowly gets the newest only. Do not change a list.
func (m *Manager) Changes(ctx context.Context) <-chan []Owner {
	return m.owners.Changes(ctx, m.driver.Over())
}

// settleOwners tells who runs what, by what runs and by what was ordered. Loop only.
func (m *Manager) settleOwners() {
	at, _ := m.locator.Load().All()
	m.owners.Update(func(list []Owner) (_ []Owner, changed bool) {
		for s := range list {
			o := owner(list[s].Shard, at[s], m.table.Of(s))
			if o == list[s] {
				continue
			}
			if !changed {
				list, changed = slices.Clone(list), true
			}
			list[s] = o
		}
		return list, changed
	})
}

// Listing is what the coordinator knows of all shards.
type Listing struct {
	// Coordinator: this member coordinates; otherwise the rest is empty.
	Coordinator bool `json:"coordinator"`
	// Recovered says that the coordinator knows what everybody runs.
	Recovered bool           `json:"recovered"`
	Shards    []ShardListing `json:"shards,omitempty"`
	// Running, Moving, Waiting and Unowned count the shards.
	Running int `json:"running"`
	Moving  int `json:"moving"`
	Waiting int `json:"waiting"`
	Unowned int `json:"unowned"`
	// Silent are members that have not said what they run, Strangers those that are configured with other shards, by name.
	Silent    []string `json:"silent,omitempty"`
	Strangers []string `json:"strangers,omitempty"`
}

// ShardListing is one shard.
type ShardListing struct {
	Shard string `json:"shard"`
	// State is unowned, running, moving or waiting.
	State string `json:"state"`
	// Owner runs it, or may; To is the member that it is on its way to. By name.
	Owner string `json:"owner"`
	To    string `json:"to,omitempty"`
	Token uint64 `json:"token,omitempty"`
	// Since is when the state began.
	Since time.Time `json:"since"`
}

// Listing returns what this member's coordinator knows, if it has one.
func (m *Manager) Listing() Listing {
	l, _ := m.listing.Get()
	l.Shards, l.Silent, l.Strangers = slices.Clone(l.Shards), slices.Clone(l.Silent), slices.Clone(l.Strangers)
	return l
}

// publish renews what Owner and Listing say. Loop only.
func (m *Manager) publish() {
	m.settleOwners()
	if m.coord == nil {
		m.listing.Update(func(Listing) (Listing, bool) { return Listing{}, true })
		return
	}
	if r := m.coord.Revision(); r != m.published || r == 0 {
		m.published = r
		m.listing.Update(func(Listing) (Listing, bool) { return m.list(m.coord.Status()), true })
	}
}

// measure shows how many shards are in which state, at the coordinator's member.
func (m *Manager) measure() error {
	meter := drive.Meter(m.cluster)
	shards, err := meter.Int64ObservableGauge("sbr.shards", metric.WithUnit("{shard}"),
		metric.WithDescription("Shards by state, at the member that coordinates them; the others show none."))
	if err != nil {
		return err
	}
	m.shown, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		l, _ := m.listing.Get()
		if !l.Coordinator {
			return nil
		}
		show := func(state coordinator.State, n int) {
			o.ObserveInt64(shards, int64(n), metric.WithAttributes(
				attribute.String("name", m.cfg.Type), attribute.String("state", string(state))))
		}
		show(coordinator.Running, l.Running)
		show(coordinator.Moving, l.Moving)
		show(coordinator.Waiting, l.Waiting)
		show(coordinator.Unowned, l.Unowned)
		return nil
	}, shards)
	return err
}

func (m *Manager) list(st coordinator.Status) Listing {
	l := Listing{Coordinator: true, Recovered: st.Recovered, Running: st.Running, Moving: st.Moving, Waiting: st.Waiting, Unowned: st.Unowned,
		Silent: names(st.Silent), Strangers: names(st.Strangers)}
	for _, s := range st.Shards {
		l.Shards = append(l.Shards, ShardListing{Shard: s.Shard, State: string(s.State), Owner: downing.NameOf(s.Owner), To: downing.NameOf(s.To), Token: s.Token,
			Since: m.driver.Origin.Add(s.Since)})
	}
	return l
}

func names(ids []sbr.ID) (names []string) {
	for _, id := range ids {
		names = append(names, downing.NameOf(id))
	}
	return names
}
