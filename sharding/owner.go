package sharding

import (
	"context"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/sbr"
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
	owners, _ := m.owners.Get()
	return owners[i], true
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

// settleOwners tells who owns what, by the table and by who is there. Loop only.
func (m *Manager) settleOwners() {
	m.owners.Update(func(list []Owner) (_ []Owner, changed bool) {
		for s := range list {
			id := m.host.Member(m.table.Of(s)) // empty for one that is gone
			if list[s].ID == id {
				continue
			}
			if !changed {
				list, changed = slices.Clone(list), true
			}
			list[s].ID, list[s].Name = id, downing.NameOf(id)
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
