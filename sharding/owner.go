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
	// Running: the shard runs on its owner.
	Running State = "running"
	// Moving: no member is known to run the shard. A Table of the coordinator's member says so as well while
	// the owner still runs the shard but has to hand it over.
	Moving State = "moving"
	// Only a Table of the coordinator's member has Unowned and Waiting; other members show such shards as
	// Moving. Unowned: no member runs the shard or was ordered to. Waiting: for a removal margin, for a
	// lease, or for a member that does not answer or does not stop.
	Unowned State = "unowned"
	Waiting State = "waiting"
)

// Owner is the member that runs a shard, as far as this member knows. It changes when a run starts or ends;
// the owner may have just stopped.
type Owner struct {
	Shard string `json:"shard"`
	// ID is the member's incarnation, Name its name. Empty: no member, or it is not known.
	ID   sbr.ID `json:"incarnation"`
	Name string `json:"member"`
	// Endpoint is Config.Endpoint of that member, Token the token of the run.
	Endpoint string `json:"endpoint"`
	Token    uint64 `json:"token"`
	State    State  `json:"state"`
}

// ShardOf returns the shard of Numbered(n) that a key belongs to: the 64-bit xxHash (XXH64, seed 0) of its
// bytes, modulo n, in decimal. This rule never changes, and is the same in every language. n must be at least
// 1.
func ShardOf(key string, n int) string {
	return strconv.FormatUint(xxhash.Sum64String(key)%uint64(n), 10)
}

// Owner returns the owner of a shard; ok is false if there is no such shard. It never blocks.
func (m *Manager) Owner(shard string) (o Owner, ok bool) {
	i, ok := slices.BinarySearch(m.cfg.Shards, shard)
	if !ok {
		return Owner{}, false
	}
	return owner(shard, m.locator.All()[i]), true
}

// Wait returns the owner of a shard as soon as it is known. Call it after Start. The error wraps ErrNoShard,
// or the cause of ctx, or says that the manager was stopped.
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

// owner makes an Owner of a shard's location.
func owner(shard string, at locate.Location) Owner {
	o := Owner{Shard: shard, ID: at.ID, Name: at.Name, Endpoint: at.Endpoint, Token: at.Token, State: Running}
	if !at.Known() {
		o.State = Moving
	}
	return o
}

// Owners lists the owners, by shard.
func (m *Manager) Owners() []Owner { return m.ownersOf(m.locator.All()) }

func (m *Manager) ownersOf(at []locate.Location) []Owner {
	owners := make([]Owner, len(at))
	for i, name := range m.cfg.Shards {
		owners[i] = owner(name, at[i])
	}
	return owners
}

// Changes sends all owners, now and after each change, until ctx ends; then the channel is closed. A slow
// reader gets the newest value only.
func (m *Manager) Changes(ctx context.Context) <-chan []Owner {
	return locate.Changes(ctx, m.locator, m.ownersOf)
}

// publish updates what Table shows of the coordinator. Loop only.
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
		for state, n := range l.Count {
			o.ObserveInt64(shards, int64(n), metric.WithAttributes(
				attribute.String("name", m.cfg.Type), attribute.String("state", string(state))))
		}
		return nil
	}, shards)
	return err
}
