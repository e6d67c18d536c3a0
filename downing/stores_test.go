package downing_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// elsewhere gives some members another store than the cluster's.
func elsewhere(names ...string) (store func() *leasetest.Memory, config func(string, *downing.Config)) {
	store = sync.OnceValue(leasetest.NewMemory) // in the bubble of the test
	return store, func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		if slices.Contains(names, name) {
			c.Store = store().View(name)
		}
	}
}

// requireAstray requires that exactly these members are suspended because of their store, and that everybody says so.
func (c *cluster) requireAstray(names ...string) {
	c.t.Helper()
	for _, m := range c.Members() {
		st, want := m.Provider.Status(), sbr.StateUp
		if slices.Contains(names, m.Name) {
			want = sbr.StateSuspended
			require.Contains(c.t, st.SuspendedBecause, "this member keeps the lease in another store", m.Name)
		}
		require.Equal(c.t, want, st.State, m.Name)
		require.Equal(c.t, names, st.OtherStore, m.Name)
	}
}

// A member whose lease is in another store than that of most is suspended, and the others go on. Of two stores with as many members it is the one of
// the oldest member that counts (design rule 20).
func TestStores_TheOddOneIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		members int
		astray  []string
	}{
		"the youngest of three":            {3, []string{"n3"}},
		"the oldest of three, which leads": {3, []string{"n1"}},
		"the younger of two":               {2, []string{"n2"}},
		"two of five":                      {5, []string{"n1", "n4"}},
		"the younger half":                 {4, []string{"n3", "n4"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeters(t)
			_, config := elsewhere(c.astray...)
			both := func(name string, d *downing.Config) { m.config(name, d); config(name, d) }
			virtual(t, both, func(t *testing.T, k *cluster) {
				for i, n := range clustertest.Names(c.members) {
					k.Boot(n, clustertest.Names(c.members)[:min(i, 1)]...)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(time.Minute)
				k.requireAstray(c.astray...)
				m.require(c.astray[0], "sbr.suspensions{cause=store} > 0")
				m.require("n2", "sbr.lease.elsewhere = "+string(rune('0'+len(c.astray))))
				time.Sleep(10 * time.Minute)
				k.requireAstray(c.astray...)
			})
		})
	}
}

// However a cut goes through a cluster with two stores, at most one side is up, and only the cluster's own store has a say. Those that go on
// are those of one store.
func TestStores_InACut(t *testing.T) {
	all := clustertest.Names(5)
	three, two := all[:3], all[3:]
	for name, c := range map[string]struct {
		astray, one, two []string
		remove           bool
		want             [][]string
		works            []string
	}{
		"along the stores": {astray: two, one: three, two: two, want: [][]string{three}, works: three},
		"along the stores, and a script removes what is failed": {
			astray: two, one: three, two: two, remove: true, want: [][]string{three}, works: three,
		},
		"the odd one alone":                                        {astray: all[:1], one: all[:1], two: all[1:], want: [][]string{all[1:]}, works: all[1:]},
		"the odd one on the losing side":                           {astray: all[3:4], one: three, two: two, want: [][]string{three}, works: three},
		"most of the larger side, of whom the only other one wins": {astray: all[:2], one: three, two: two, want: [][]string{three}, works: all[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			other, config := elsewhere(c.astray...)
			virtual(t, config, func(t *testing.T, k *cluster) {
				for i, n := range all {
					k.Boot(n, all[:min(i, 1)]...)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(time.Minute)
				k.requireAstray(c.astray...)
				require.NoError(t, k.Net.Partition(c.one, c.two))
				for range 60 {
					if c.remove {
						k.removeFailed(all, true)
					}
					time.Sleep(time.Second)
				}
				k.requireOneSide(c.want, 20*time.Minute)
				var works []string
				for _, n := range k.Up() {
					if k.provider(n).Status().State == sbr.StateUp {
						works = append(works, n)
					}
				}
				require.Equal(t, c.works, works)
				for _, r := range other().History() {
					require.Equal(t, uint64(1), r.Token, "at most the verdict of the cluster's store is copied there, once most survivors use it")
				}
			})
		})
	}
}

// movable is a store of which the test says which one it is.
type movable struct {
	lease.Store
	id *atomic.Pointer[string]
}

func (m movable) Identity(context.Context) (string, error) {
	if id := *m.id.Load(); id != "" {
		return id, nil
	}
	return "", errors.New("it does not tell")
}

// A member goes on once its store is that of the others again: its address led elsewhere for a while, or theirs have followed.
func TestStores_BackToOne(t *testing.T) {
	ids := make(map[string]*atomic.Pointer[string])
	set := func(id string, names ...string) {
		for _, n := range names {
			ids[n].Store(&id)
		}
	}
	virtual(t, func(name string, c *downing.Config) {
		ids[name] = new(atomic.Pointer[string])
		set("a", name)
		c.Store = movable{c.Store, ids[name]}
	}, func(t *testing.T, c *cluster) {
		c.Form(3)
		set("b", "n2")
		time.Sleep(10 * time.Minute)
		c.requireAstray("n2")
		set("a", "n2")
		c.Whole(3)
		set("", "n1", "n2", "n3") // for a while nobody can tell: nothing is compared with what is not known
		time.Sleep(20 * time.Minute)
		c.requireAstray()
		set("b", "n1", "n2", "n3") // the cluster moves as a whole
		time.Sleep(10 * time.Minute)
		c.requireAstray()
		require.NotEmpty(t, c.provider("n1").Status().Lease.Store)
	})
}

// A store that cannot tell which one it is, and a member of an older version, which says nothing, are not compared.
func TestStores_UnknownIsNotCompared(t *testing.T) {
	virtual(t, func(name string, c *downing.Config) {
		if name != "n1" {
			c.Store = struct{ lease.Store }{c.Store}
		}
	}, func(t *testing.T, c *cluster) {
		c.Form(3)
		time.Sleep(10 * time.Minute)
		c.requireAstray()
		require.Empty(t, c.provider("n2").Status().Lease.Store)
	})
}
