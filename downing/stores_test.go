package downing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
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

// requireAstray requires that exactly these members are suspended because of their store, and that everybody
// says so.
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

// bootsApart starts n1 to nN, some of which have another store: they do not wait for a whole cluster.
func (c *cluster) bootsApart(n int) {
	for i, name := range clustertest.Names(n) {
		c.Boot(name, clustertest.Names(min(i, 1))...)
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Minute)
}

// A member whose lease is in another store than that of most is suspended, and the others go on. Of two
// stores with as many members it is the one of the oldest member that counts (design rule 20).
func TestStores_TheOddOneIsSuspended(t *testing.T) {
	long(t)
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
			_, config := elsewhere(c.astray...)
			metered(t, 0, config, func(_ *testing.T, k *cluster, m *meters) {
				k.bootsApart(c.members)
				k.requireAstray(c.astray...)
				m.require(c.astray[0], "sbr.suspensions{cause=store} > 0")
				m.require("n2", "sbr.lease.elsewhere = "+string(rune('0'+len(c.astray))))
				time.Sleep(10 * time.Minute)
				k.requireAstray(c.astray...)
			})
		})
	}
}

// However a cut goes through a cluster with two stores, at most one side is up, and only the cluster's own
// store has a say. Those that go on are those of one store.
func TestStores_InACut(t *testing.T) {
	long(t)
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
				k.bootsApart(5)
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
					require.Equal(t, uint64(1), r.Token,
						"at most the verdict of the cluster's store is copied there, once most survivors use it")
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

// A member goes on once its store is that of the others again: its address led elsewhere for a while, or
// theirs have followed.
func TestStores_BackToOne(t *testing.T) {
	long(t)
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

// A store that cannot tell which one it is, and a member of an older version, which says nothing, are not
// compared.
func TestStores_UnknownIsNotCompared(t *testing.T) {
	long(t)
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

// A member that cannot find out which store it has is not protected from one with another store: that is
// loud, and in the metrics until it knows.
func TestStores_UnknownIsLoud(t *testing.T) {
	var id atomic.Pointer[string]
	id.Store(new(string))
	log := new(logtest.Log)
	metered(t, 1, func(_ string, c *downing.Config) {
		c.Store, c.Logger = movable{c.Store, &id}, log.Warnings()
	}, func(t *testing.T, _ *cluster, m *meters) {
		said := log.With("it is not known which store keeps the lease")
		require.Len(t, said, 1)
		require.Contains(t, said[0], "sbr lease doctor")
		require.Contains(t, said[0], "it does not tell")
		require.NotContains(t, m.collect("n1"), "sbr.lease.elsewhere")
		id.Store(new("a"))
		time.Sleep(10 * time.Minute)
		m.require("n1", "sbr.lease.elsewhere = 0")
	})
}

// Two stores that nobody could tell apart made two verdicts of one token. When the sides meet again no read
// ends that: they are suspended, for longer each time, and do not resume many times a second in between.
func TestStores_TwoVerdictsMeet(t *testing.T) {
	_, config := elsewhere("n3", "n4")
	log, m := new(logtest.Log), newMeters(t)
	beside(t, 4, func(name string, c *downing.Config) {
		m.config(name, c)
		config(name, c)
		c.Store = struct{ lease.Store }{c.Store}
		if name == "n1" {
			c.Logger = log.Warnings()
		}
	}, func(t *testing.T, b *besides) {
		require.NoError(t, b.Net.Partition([]string{"n1", "n2"}, []string{"n3", "n4"}))
		time.Sleep(2 * time.Minute)
		require.Len(t, b.Up(), 4, "nothing protects from two stores that do not say which they are")
		m.require("n1", "sbr.suspensions{cause=resolver} = 1")
		b.Net.Heal()
		require.NoError(t, b.Join(b.agents["n1"].node, "n3"))
		suspended := make(map[string]int)
		for range 120 {
			time.Sleep(time.Second)
			for _, name := range b.Up() {
				if b.state(name) == sbr.StateSuspended {
					suspended[name]++
				}
			}
		}
		for _, name := range b.Up() {
			require.Greater(t, suspended[name], 20, name)
		}
		m.require("n1", "sbr.suspensions{cause=resolver} > 1", "sbr.suspensions{cause=resolver} < 10")
		require.Less(t, len(log.With("two verdicts have the token 1, by n1 and by n3")), 10)
	})
}

// With one store, a member that holds another verdict under the token of that in the store suspends nobody,
// however often it tells it.
func TestStores_TheStoreDecidesOfTwoVerdicts(t *testing.T) {
	var id atomic.Pointer[string]
	id.Store(new("a"))
	formed(t, 3, func(_ string, c *downing.Config) { c.Store = movable{c.Store, &id} }, func(t *testing.T, c *cluster) {
		p := c.puppet()
		up := []sbr.ID{c.id("n1"), c.id("n2"), c.id("n3"), p.id}
		c.Store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: up[0], Survivors: up}})
		time.Sleep(time.Minute)
		for range 5 {
			p.say(wire.Message{Kind: wire.KindVerdict, From: p.id, Token: 1, By: p.id, Whole: true, Up: up[3:], Down: up[:3]})
			time.Sleep(10 * time.Second)
		}
		for _, name := range clustertest.Names(3) {
			require.Equal(t, sbr.StateUp, c.provider(name).Status().State)
			require.NotContains(t, fmt.Sprint(c.Occurred(name)), string(sbr.TopicConflict))
		}
		require.NoError(t, p.serf.Shutdown())
	})
}

// board is a store that shows what it is told, unless it fails.
type board struct {
	lease.Store
	fails func(context.Context) error
	mu    *sync.Mutex
	shown *[]string
}

func (b board) Announce(ctx context.Context, reason, text string, warning bool) error {
	if err := b.fails(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.shown = append(*b.shown, fmt.Sprintf("%s %s %v", reason, text, warning))
	return nil
}

// boards are what is shown, by the first word, with the metrics and the logs of the members that show it.
type boards struct {
	*meters
	logs
	mu  sync.Mutex
	all []string
}

func (b *boards) of(reason string) (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range slices.Sorted(slices.Values(b.all)) {
		if text, is := strings.CutPrefix(s, reason+" "); is {
			texts = append(texts, text)
		}
	}
	return texts
}

// announcing runs f with a store like that. fails says what becomes of each announcement.
func announcing(t *testing.T, fails func(context.Context) error,
	f func(t *testing.T, c *cluster, b *boards)) {
	b := &boards{meters: newMeters(t), logs: make(logs)}
	config := func(name string, c *downing.Config) {
		b.meters.config(name, c)
		b.logs.config(name, c)
		c.Store = board{c.Store, fails, &b.mu, &b.all}
	}
	virtual(t, config, func(t *testing.T, c *cluster) { f(t, c, b) })
}

// What an operator asks about first is shown beside the lease: the suspended members, the verdict once, and a
// downed member, although that is the last thing that it does.
func TestStores_Announce(t *testing.T) {
	long(t)
	slow := func(ctx context.Context) error { return sleep.For(ctx, time.Second) }
	announcing(t, slow, func(t *testing.T, c *cluster, b *boards) {
		c.Form(5)
		require.Empty(t, b.all, "all is well")
		require.NoError(t, c.Net.Partition(upper, lower))
		time.Sleep(2 * time.Minute)
		require.Len(t, b.of("Suspended"), 5, "%q", b.all)
		require.Regexp(t, `^n1: suspended: .* true$`, b.of("Suspended")[0])
		require.Len(t, b.of("Verdict"), 1, "%q", b.all)
		require.Regexp(t, `^n1: verdict 1 by n1: 3 survivors, 2 down: .* \(down: n4, n5\) false$`,
			b.of("Verdict")[0])
		require.Len(t, b.of("Downed"), 2, "%q", b.all)
		require.Regexp(t, `^n4: down: .* true$`, b.of("Downed")[0])
		b.require("n1", "sbr.lease.unshown = 0")
	})
}

// A member that is suspended again and again in one incident says so once.
func TestStores_AnnounceFlapping(t *testing.T) {
	long(t)
	announcing(t, func(context.Context) error { return nil }, func(t *testing.T, c *cluster, b *boards) {
		c.Form(5)
		for range 5 {
			require.NoError(t, c.Net.Partition(upper, lower))
			time.Sleep(10 * time.Second)
			c.Net.Heal()
			time.Sleep(20 * time.Second)
		}
		b.require("n1", "sbr.suspensions{cause=resolver} > 1")
		require.Len(t, b.of("Suspended"), 5, "%q", b.all)
	})
}

// A store that shows nothing changes nothing: it is away, or refuses, which the log says once.
func TestStores_AnnounceInVain(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(context.Context) error
		says  int
	}{
		"refused": {func(context.Context) error { return fmt.Errorf("%w: no right", lease.ErrRefused) }, 1},
		"away":    {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			announcing(t, c.fails, func(t *testing.T, k *cluster, b *boards) {
				k.Form(5)
				require.NoError(t, k.Net.Partition(upper, lower))
				k.requireOneSide([][]string{upper}, time.Minute)
				time.Sleep(time.Minute)
				b.meters.require("n1", "sbr.lease.unshown = 2")
				require.Len(t, b.logs["n1"].With("not shown beside the lease"), c.says)
			})
		})
	}
}
