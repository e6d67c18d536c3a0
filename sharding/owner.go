package sharding

import (
	"context"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/coordinator"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Owner says who runs a shard, as far as is known here. It may be about to start there, or not run there any more.
type Owner struct {
	Shard string
	// ID is the member's incarnation, Name its name. Empty: nobody, or it is not known.
	ID   sbr.ID
	Name string
}

// Owner returns who runs a shard; ok is false if there is no such shard. It never blocks.
func (m *Manager) Owner(shard string) (o Owner, ok bool) {
	i, ok := slices.BinarySearch(m.cfg.Shards, shard)
	if !ok {
		return Owner{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owners[i], true
}

// Owners lists who runs what, by shard.
func (m *Manager) Owners() []Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owners)
}

// Changes tells all owners, now and after each change, until ctx ends; then the channel is closed. Who reads slowly gets the newest only.
func (m *Manager) Changes(ctx context.Context) <-chan []Owner {
	changes := make(chan []Owner, 1)
	go func() {
		defer close(changes)
		for {
			m.mu.Lock()
			owners, changed := slices.Clone(m.owners), m.changed
			m.mu.Unlock()
			select {
			case <-changes: // nobody has read it
			default:
			}
			changes <- owners
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-m.over:
				return
			}
		}
	}()
	return changes
}

// learn takes in what a message says of places. Loop only.
func (m *Manager) learn(from sbr.ID, msg *message.Message) {
	m.settleOwners(m.table.Learn(message.KeyOf(from), msg))
}

func (m *Manager) settleOwners(shards []int) {
	if len(shards) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := false
	for _, s := range shards {
		id := m.ids[m.table.Place(s).Owner] // empty for one that is gone
		if m.owners[s].ID == id {
			continue
		}
		changed = true
		m.owners[s].ID, m.owners[s].Name = id, downing.NameOf(id)
	}
	if changed {
		close(m.changed)
		m.changed = make(chan struct{})
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.listing
	l.Shards, l.Silent, l.Strangers = slices.Clone(l.Shards), slices.Clone(l.Silent), slices.Clone(l.Strangers)
	return l
}

// publish renews what Owner and Listing say. Loop only.
func (m *Manager) publish() {
	all := make([]int, len(m.owners))
	for i := range all {
		all[i] = i
	}
	m.settleOwners(all)
	if m.coord == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.listing = Listing{}
		return
	}
	if r := m.coord.Revision(); r == m.published && r != 0 {
		return
	}
	m.published = m.coord.Revision()
	l := m.list(m.coord.Status())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listing = l
}

func (m *Manager) list(st coordinator.Status) Listing {
	l := Listing{Coordinator: true, Recovered: st.Recovered, Running: st.Running, Moving: st.Moving, Waiting: st.Waiting, Unowned: st.Unowned,
		Silent: names(st.Silent), Strangers: names(st.Strangers)}
	for _, s := range st.Shards {
		l.Shards = append(l.Shards, ShardListing{Shard: s.Shard, State: s.State.String(), Owner: downing.NameOf(s.Owner), To: downing.NameOf(s.To), Token: s.Token,
			Since: m.origin.Add(s.Since)})
	}
	return l
}

func names(ids []sbr.ID) (names []string) {
	for _, id := range ids {
		names = append(names, downing.NameOf(id))
	}
	return names
}
