package sharding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/internal/locate"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
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
	// Moving: nobody is known to run it. A Table of the coordinator's member says so as well where its owner
	// still does and has to hand over.
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
	return owner(shard, m.locator.All()[i]), true
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
	return owner(shard, at), nil
}

// place is where a shard runs.
func (m *Manager) place(shard string) (locate.Slot, error) {
	i, ok := slices.BinarySearch(m.cfg.Shards, shard)
	switch {
	case !ok:
		return locate.Slot{}, fmt.Errorf("%w: %q of %s", ErrNoShard, shard, m.cfg.Type)
	case !m.started.Load():
		return locate.Slot{}, fmt.Errorf("shards of %s: the manager was not started", m.cfg.Type)
	}
	return m.locator.Slot(i), nil
}

// owner says who runs a shard, by where it runs.
func owner(shard string, at locate.Location) Owner {
	o := Owner{Shard: shard, ID: at.ID, Name: at.Name, Endpoint: at.Endpoint, Token: at.Token, State: Running}
	if !at.Known() {
		o.State = Moving
	}
	return o
}

// Owners lists who runs what, by shard.
func (m *Manager) Owners() []Owner { return m.ownersOf(m.locator.All()) }

func (m *Manager) ownersOf(at []locate.Location) []Owner {
	owners := make([]Owner, len(at))
	for i, name := range m.cfg.Shards {
		owners[i] = owner(name, at[i])
	}
	return owners
}

// Changes tells all owners, now and after each change, until ctx ends; then the channel is closed. Who reads
// slowly gets the newest only.
func (m *Manager) Changes(ctx context.Context) <-chan []Owner {
	return locate.Changes(ctx, m.locator, m.ownersOf)
}

// publish renews what Table says of the coordinator. Loop only.
func (m *Manager) publish() {
	m.known.Update(func(old *coordinator.Status) (*coordinator.Status, bool) {
		if m.coord == nil {
			return nil, old != nil
		}
		r := m.coord.Revision()
		if r > 0 && r == m.published {
			return old, false
		}
		m.published = r
		return new(m.coord.Status()), true
	})
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
		l, _ := m.known.Get()
		if l == nil {
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
