package sharding_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// Another process holds the lease of the shard 2: the member that waits for it says so, and the others know
// that it does not run.
func TestTable_SaysWhoHoldsALease(t *testing.T) {
	quick := clustertest.Options{Config: clustertest.Quick}
	clustertest.Virtual(t, quick, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, 4)
		store := leasetest.NewMemory()
		c.leases = map[string]*leasetest.Memory{"payments-shard-orders-2": store}
		var lines bytes.Buffer
		log := slog.New(slog.NewTextHandler(&lines, nil))
		c.change = func(_ string, cfg *sharding.Config) { cfg.Logger = log }
		cl.Form(2)
		settings := cl.Member("n1").Provider.Config().Lease
		somebody, err := lease.New(store.View("somebody"), "somebody", settings, lease.Options{})
		require.NoError(t, err)
		defer somebody.Close()
		_, err = somebody.Acquire(t.Context(), lease.Proposal{})
		require.NoError(t, err)
		c.start("n1")
		c.start("n2")
		c.Eventually(time.Minute, "not three of four run", func() bool { return c.register.all() == 3 })
		time.Sleep(time.Minute)

		waits := 0
		for name, m := range c.managers {
			table := m.Table()
			require.Equal(t, "n1", table.Coordinator)
			for _, r := range table.Shards {
				switch {
				case r.Shard != "2":
					require.Equal(t, sharding.Running, r.State)
					require.Equal(t, "http://"+r.Name, r.Endpoint)
					require.Empty(t, r.LeaseHolder)
				case r.LeaseHolder != "":
					require.Equal(t, "somebody", r.LeaseHolder)
					waits++
				}
			}
			require.Empty(t, table.Shards[2].Name)
			state := map[string]sharding.State{"n1": sharding.Waiting, "n2": sharding.Moving}[name]
			require.Equal(t, state, table.Shards[2].State)
		}
		require.Equal(t, 1, waits)

		require.NoError(t, somebody.Release(t.Context()))
		c.settles(time.Minute)
		time.Sleep(time.Minute)
		for _, m := range c.managers {
			require.Equal(t, sharding.Running, m.Table().Shards[2].State)
			require.Empty(t, m.Table().Shards[2].LeaseHolder)
		}
		c.stop()
		require.Contains(t, lines.String(),
			"waiting for the lease payments-shard-orders-2, which is held by somebody")
	})
}

// Until a verdict, a member that was killed is still called the owner of its shards: the table says that it
// is unreachable.
func TestTable_SaysWhoIsUnreachable(t *testing.T) {
	quick := clustertest.Options{Config: clustertest.Quick}
	clustertest.Virtual(t, quick, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, 8)
		c.startAll(3)
		defer c.stop()
		c.settles(time.Minute)
		unreachable := func() (n int) {
			for _, r := range c.managers["n1"].Table().Shards {
				if r.Unreachable {
					require.Equal(t, "n3", r.Name)
					n++
				}
			}
			return n
		}
		require.Zero(t, unreachable())
		c.Eventually(time.Minute, "n3 has none", func() bool { return c.register.on()["n3"] > 0 })
		time.Sleep(time.Minute) // what is balanced stays
		had := c.register.on()["n3"]
		require.NoError(t, cl.Net.Freeze("n3"))
		require.NoError(t, c.managers["n1"].Ready())
		c.Eventually(time.Minute, "n3 is not called unreachable", func() bool { return unreachable() == had })
		require.EqualError(t, c.managers["n1"].Ready(), "shards of orders: this member is suspended")
	})
}

func TestHandler(t *testing.T) {
	m, err := sharding.New(provider(t), sharding.Config{Type: "orders", Shards: []string{"b", "a"}})
	require.NoError(t, err)
	ask := func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		sharding.Handler(m).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/shards", nil))
		return w
	}
	answer := ask(http.MethodGet)
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	var tables []sharding.Table
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &tables))
	require.Equal(t, []sharding.Table{m.Table()}, tables)
	require.Equal(t, []sharding.Row{
		{Owner: sharding.Owner{Shard: "a", State: sharding.Moving}},
		{Owner: sharding.Owner{Shard: "b", State: sharding.Moving}},
	}, tables[0].Shards)
	require.Equal(t, http.StatusMethodNotAllowed, ask(http.MethodPost).Code)
	require.ErrorContains(t, m.Ready(), "shards of orders: not started")
}

// A browser gets a page: where each shard runs, and what it waits for. Numbered shards are in the order of numbers.
func TestHandler_Page(t *testing.T) {
	m, err := sharding.New(provider(t), sharding.Config{Type: "orders", Shards: []string{"10", "9"}})
	require.NoError(t, err)
	for name, managers := range map[string][]*sharding.Manager{"one type": {m}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/shards", nil)
			r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
			sharding.Handler(managers...).ServeHTTP(w, r)
			require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
			if len(managers) == 0 {
				require.Contains(t, w.Body.String(), "This service runs no shards.")
				return
			}
			require.Contains(t, w.Body.String(), "<h1>orders</h1>")
			require.Contains(t, w.Body.String(), `<tr><td>9<td>–<td class="warn">moving<td>–<td>–</tr>
<tr><td>10<td>`)
		})
	}
}

// What a table says of a shard is one sentence, in the program and on the page.
func TestRow_Says(t *testing.T) {
	for want, r := range map[string]sharding.Row{
		"running":              {Owner: sharding.Owner{State: sharding.Running}},
		"running, unreachable": {Owner: sharding.Owner{State: sharding.Running}, Unreachable: true},
		"moving to n2":         {Owner: sharding.Owner{State: sharding.Moving}, To: "n2"},
		"waiting to n2, its lease is held by n1": {
			Owner: sharding.Owner{State: sharding.Waiting}, To: "n2", LeaseHolder: "n1",
		},
	} {
		require.Equal(t, want, r.Says())
		require.Equal(t, want == "running", r.Well(), want)
	}
}
