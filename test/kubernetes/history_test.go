package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

const (
	historyRuns    = 50
	historyClients = 30
	historySteps   = 8
	// searchTime bounds the search for an explanation of one history, on a machine that does other things as
	// well. To run into it is a failure.
	searchTime = 5 * time.Minute
)

// No holder expires in these runs. The heartbeats are quick, so that they meet faults too.
var historySettings = lease.Settings{
	HeartbeatTimeout: time.Hour, HeartbeatInterval: 200 * time.Millisecond,
	OperationTimeout: 1500 * time.Millisecond,
}

// Thirty clients, each with a connection of its own, contend for one lease on a real API server, while
// requests and answers are lost, delayed, refused and committed late. What they saw must be explained by one
// lease with a chain of verdicts. HISTORY_SEED repeats one run, as far as a real server can repeat anything.
func TestReal_HistoriesAreLinearizable(t *testing.T) {
	cluster := kubetest.Shared(t)
	namespace := cluster.Namespace(t)
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		total  = map[string]int{}
		broken error
	)
	began, seeds := time.Now(), historySeeds(t)
	for range 3 { // most of a run is waiting
		all.Go(func() {
			for seed := range seeds {
				tally, err := historyRun(t, cluster, namespace, seed)
				mu.Lock()
				broken = errors.Join(broken, err)
				for what, n := range tally {
					total[what] += n
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.NoError(t, broken)
	t.Logf("%d runs in %s: %v", historyRuns, time.Since(began).Round(time.Second), total)
	if os.Getenv("HISTORY_SEED") == "" {
		require.Subset(t, slices.Collect(maps.Keys(total)), []string{
			"granted", "held", "superseded", "unknown", "late-grant", "released", "not-held", "read", "check-yes", "check-no",
		}, "what is never answered is not tested")
		require.Greater(t, total["granted"], 2*historyRuns)
	}
}

// historySeeds are new seeds in each run of the test, or the seed in HISTORY_SEED.
func historySeeds(t *testing.T) <-chan uint64 {
	seeds := make(chan uint64, historyRuns)
	defer close(seeds)
	if text := os.Getenv("HISTORY_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "HISTORY_SEED")
		seeds <- seed
		return seeds
	}
	for range historyRuns {
		seeds <- rand.Uint64()
	}
	return seeds
}

// historyRun plays one run on a lease of its own, behind a proxy of its own.
func historyRun(t *testing.T, cluster *kubetest.Cluster, namespace string, seed uint64) (
	map[string]int, error) {
	proxy := kubetest.NewProxy(t, cluster.AdminKubeconfig())
	defer proxy.Close()
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = proxy.Kubeconfig(), namespace, fmt.Sprintf("history-%d", seed)
	cfg.RequestTimeout = historySettings.OperationTimeout
	h := linear.New(linear.Options{})
	if err := historyPlay(t.Context(), h, cfg, proxy, seed); err != nil {
		return nil, fmt.Errorf("HISTORY_SEED=%d: %w", seed, err)
	}
	if err := h.Check(searchTime, linear.Artifacts(t)); err != nil {
		return nil, fmt.Errorf("HISTORY_SEED=%d: %w", seed, err)
	}
	return h.Tally(), nil
}

func historyPlay(ctx context.Context, h *linear.History, cfg kubernetes.Config, proxy *kubetest.Proxy,
	seed uint64) error {
	clients := make([]*linear.Client, 0, historyClients)
	for i := range historyClients + 1 {
		store, err := kubernetes.New(cfg)
		if err != nil {
			return err
		}
		defer store.Close()
		client, err := h.Open(i, 0, store, historySettings, lease.Options{})
		if err != nil {
			return err
		}
		defer client.Close()
		clients = append(clients, client)
	}
	proxy.SetFault(historyFaults(seed))
	watching, stop := context.WithCancel(ctx)
	var watches, players sync.WaitGroup
	for i, client := range clients[:historyClients] {
		if i%6 == 0 {
			watches.Go(func() { _ = client.Watch(watching, func(lease.Record) {}) })
		}
		players.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			client.Play(ctx, random, historySteps, 200*time.Millisecond, func() {
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
			})
		})
	}
	players.Wait()
	stop()
	watches.Wait()
	proxy.SetFault(nil)
	last := clients[historyClients]
	_, err := last.Read(ctx)
	for n := 0; err != nil && n < 10; n++ { // the machine may be busy
		_, err = last.Read(ctx)
	}
	return err
}

// historyFaults draws a fate for each request.
func historyFaults(seed uint64) func(*http.Request) kubetest.Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1000))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	upTo := func(d time.Duration) time.Duration { return time.Duration(draw(int(d))) }
	return func(r *http.Request) kubetest.Fault {
		fate := draw(100)
		if kubetest.Verb(r) == http.MethodGet {
			fate *= 3 // most requests are reads, and these are mostly left alone
		}
		switch {
		case fate < 6:
			return kubetest.Fault{Kind: kubetest.FaultDropRequest, Delay: upTo(50 * time.Millisecond)}
		case fate < 18:
			return kubetest.Fault{Kind: kubetest.FaultDropResponse}
		case fate < 24: // committed after the client has given up
			return kubetest.Fault{Kind: kubetest.FaultDropResponse,
				Delay: historySettings.OperationTimeout/2 + upTo(time.Second)}
		case fate < 28:
			return kubetest.Fault{Delay: upTo(700 * time.Millisecond)}
		case fate < 40:
			status := []int{401, 403, 409, 429, 500, 503}[draw(6)]
			return kubetest.Fault{Kind: kubetest.FaultStatus, Status: status, RetryAfter: "1"}
		default:
			return kubetest.Fault{}
		}
	}
}
