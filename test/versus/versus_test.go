package versus_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	coordv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/costs"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // leaderelection reports every step
	os.Exit(kubetest.M(m).Run())
}

// Side by side with client-go's leaderelection: the same process, the same server, the same time-to-live.

// arena is one namespace behind a proxy that counts.
type arena struct {
	kubeconfig, namespace string
	proxy                 *kubetest.Proxy
	elections             *clientset.Clientset
}

func newArena(b *testing.B) *arena {
	cluster := kubetest.Shared(b)
	proxy := kubetest.NewProxy(b, cluster.AdminKubeconfig())
	conf, err := clientcmd.BuildConfigFromFlags("", proxy.Kubeconfig())
	require.NoError(b, err)
	conf.QPS = -1
	set, err := clientset.NewForConfig(conf)
	require.NoError(b, err)
	return &arena{kubeconfig: proxy.Kubeconfig(), namespace: cluster.Namespace(b), proxy: proxy, elections: set}
}

func (a *arena) store(b *testing.B, name string) lease.Store {
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = a.kubeconfig, a.namespace, name
	store, err := kubernetes.New(cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, store.Close()) })
	return store
}

func (a *arena) lease(b *testing.B, name, owner string, s lease.Settings) *lease.Lease {
	l, err := lease.New(a.store(b, name), owner, s, lease.Options{})
	require.NoError(b, err)
	b.Cleanup(l.Close)
	return l
}

// elector is a party of leaderelection with its usual proportions: 15 s, 10 s, 2 s.
func (a *arena) elector(b *testing.B, name, owner string, ttl time.Duration,
	on leaderelection.LeaderCallbacks) *leaderelection.LeaderElector {
	if on.OnStoppedLeading == nil {
		on.OnStoppedLeading = func() {}
	}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}, Client: a.elections.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: owner},
		},
		LeaseDuration: ttl, RenewDeadline: ttl * 2 / 3, RetryPeriod: ttl * 2 / 15, Callbacks: on,
	})
	require.NoError(b, err)
	return e
}

// requests counts what f sends for the lease of that name, or for all; writes are everything but reads and
// watches.
func (a *arena) requests(name string, f func()) (all, writes int) {
	before := a.proxy.Counts()
	f()
	for call, n := range a.proxy.Counts() {
		creates := call.Verb == http.MethodPost
		if name != "" && !creates && !strings.HasSuffix(call.Path, "/"+name) {
			continue // of an election that ends
		}
		n -= before[call]
		all += n
		if call.Verb != http.MethodGet && call.Verb != kubetest.VerbWatch {
			writes += n
		}
	}
	return all, writes
}

// Cold: the lease does not exist and nothing is known of it. Warm: it exists and was seen.
func BenchmarkVersus_RequestsPerAcquire(b *testing.B) {
	a := newArena(b)
	var cold, warm, election int
	runs := 0
	for b.Loop() {
		runs++
		name := fmt.Sprintf("run-%d", runs)
		l := a.lease(b, name, "a", lease.DefaultSettings())
		n, _ := a.requests(name, func() { require.Equal(b, sbr.Granted, linear.AnswerOf(l.Acquire(b.Context(), lease.Proposal{})).Kind) })
		cold += n
		require.NoError(b, l.Release(b.Context()))
		n, _ = a.requests(name, func() { require.Equal(b, sbr.Granted, linear.AnswerOf(l.Acquire(b.Context(), lease.Proposal{})).Kind) })
		warm += n
		l.Close()

		led := make(chan struct{})
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		n, _ = a.requests(name+"-election", func() {
			e := a.elector(b, name+"-election", "a", 15*time.Second,
				leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(led) }})
			go func() { defer close(done); e.Run(ctx) }()
			<-led
		})
		election += n
		cancel()
		<-done
	}
	b.ReportMetric(float64(cold)/float64(runs), "requests/cold")
	b.ReportMetric(float64(warm)/float64(runs), "requests/warm")
	b.ReportMetric(float64(election)/float64(runs), "requests/election-cold")
}

// While nothing happens: a member that watches the verdict, a leader and a candidate.
func BenchmarkVersus_SteadyState(b *testing.B) {
	a := newArena(b)
	// Beside its watch a member reads once in 30 to 60 seconds.
	const ours, theirs = 2 * time.Minute, 30 * time.Second
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		var parties sync.WaitGroup
		l := a.lease(b, "whole", "a", lease.DefaultSettings())
		seen := make(chan struct{})
		var once sync.Once
		parties.Go(func() { _ = l.Watch(ctx, func(lease.Record) { once.Do(func() { close(seen) }) }) })
		require.Equal(b, sbr.Granted, linear.AnswerOf(l.Acquire(b.Context(), lease.Proposal{})).Kind)
		require.NoError(b, l.Release(b.Context()))
		<-seen
		all, writes := a.requests("", func() { time.Sleep(ours) })
		b.ReportMetric(float64(all-writes)*float64(time.Hour/ours), "reads/h")
		b.ReportMetric(float64(writes)*float64(time.Hour/ours), "writes/h")

		for _, owner := range []string{"leader", "candidate"} {
			led := make(chan struct{})
			e := a.elector(b, "election", owner, 15*time.Second,
				leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(led) }})
			parties.Go(func() { e.Run(ctx) })
			if owner == "leader" {
				<-led
			}
		}
		time.Sleep(3 * time.Second) // until the candidate has settled
		all, writes = a.requests("", func() { time.Sleep(theirs) })
		b.ReportMetric(float64(all-writes)*float64(time.Hour/theirs), "election-reads/h")
		b.ReportMetric(float64(writes)*float64(time.Hour/theirs), "election-writes/h")
		cancel()
		parties.Wait()
	}
}

// What the algorithm adds to the one request that nobody can do without: the medians, measured in turns on
// the same object. The bare update is the same conditional merge patch.
func BenchmarkVersus_AcquireLatency(b *testing.B) {
	a := newArena(b)
	l := a.lease(b, "latency", "a", lease.DefaultSettings())
	require.Equal(b, sbr.Granted, linear.AnswerOf(l.Acquire(b.Context(), lease.Proposal{})).Kind)
	require.NoError(b, l.Release(b.Context()))
	leases := a.elections.CoordinationV1().Leases(a.namespace)
	var acquires, patches []time.Duration
	measure := func(into *[]time.Duration, f func() error) {
		start := time.Now()
		err := f()
		*into = append(*into, time.Since(start))
		require.NoError(b, err)
	}
	const samples = 300 // in each turn: the median of a few says little
	for b.Loop() {
		for range samples {
			_, err := l.Read(b.Context()) // the bare updates have moved the version
			require.NoError(b, err)
			measure(&acquires, func() error { return linear.AnswerOf(l.Acquire(b.Context(), lease.Proposal{})).Err })
			require.True(b, l.Check())
			require.NoError(b, l.Release(b.Context()))

			object, err := leases.Get(b.Context(), "latency", metav1.GetOptions{})
			require.NoError(b, err)
			patch := barePatch(b, taken(object))
			measure(&patches, func() error {
				object, err = leases.Patch(b.Context(), "latency", types.MergePatchType, patch,
					metav1.PatchOptions{FieldManager: manager})
				return err
			})
			freed := object.DeepCopy()
			freed.Spec.HolderIdentity = new("")
			_, err = leases.Update(b.Context(), freed, metav1.UpdateOptions{FieldManager: manager})
			require.NoError(b, err)
		}
	}
	median := costs.Quantile(acquires, 50)
	b.ReportMetric(costs.Millis(median), "ms/acquire-p50")
	b.ReportMetric(costs.Millis(costs.Quantile(patches, 50)), "ms/bare-patch-p50")
	b.ReportMetric(float64(median)/float64(costs.Quantile(patches, 50)), "x-bare-patch")
}

// manager is whom the API server takes all of these writes for: it keeps books of who owns which field.
const manager = "serf-sbr"

// taken is the object with the same changes that an acquire makes.
func taken(object *coordv1.Lease) *coordv1.Lease {
	changed := object.DeepCopy()
	now := metav1.NowMicro()
	changed.Spec.HolderIdentity, changed.Spec.AcquireTime, changed.Spec.RenewTime = new("a"), &now, &now
	changed.Spec.LeaseTransitions = new(*object.Spec.LeaseTransitions + 1)
	changed.Annotations[kubernetes.Annotation] = nonce.ReplaceAllString(
		changed.Annotations[kubernetes.Annotation], `"nonce":"`+rand.Text()+`"`)
	return changed
}

var nonce = regexp.MustCompile(`"nonce":"[^"]*"`)

// barePatch makes the same conditional patch as an acquire.
func barePatch(b *testing.B, object *coordv1.Lease) []byte {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": object.UID, "resourceVersion": object.ResourceVersion, "annotations": object.Annotations},
		"spec":     object.Spec,
	})
	require.NoError(b, err)
	return patch
}

// From the answer to the write of a verdict until each of 100 watchers has seen it.
func BenchmarkVersus_VerdictSeenBy100Watchers(b *testing.B) {
	a := newArena(b)
	(&costs.Target{Open: func(b *testing.B, _, name string) lease.Store { return a.store(b, name) }}).Verdict(b)
}

// From the last sign of life of a holder that crashes until another one holds the lease, over the
// time-to-live. The medians of five.
func BenchmarkVersus_TakeoverAfterACrash(b *testing.B) {
	a := newArena(b)
	const ttl, samples = 4 * time.Second, 5
	for b.Loop() {
		var ours, election []time.Duration
		for i := range samples {
			ours = append(ours, leaseTakeover(b, a, fmt.Sprintf("crash-%d", i), ttl))
			election = append(election, electionTakeover(b, a, fmt.Sprintf("election-%d", i), ttl))
		}
		b.ReportMetric(float64(costs.Quantile(ours, 50))/float64(ttl), "ttl/takeover")
		b.ReportMetric(float64(costs.Quantile(election, 50))/float64(ttl), "ttl/election-takeover")
		b.ReportMetric(float64(costs.Quantile(ours, 50))/float64(costs.Quantile(election, 50)), "x-election")
		b.ReportMetric(float64(costs.Quantile(ours, 100))/float64(costs.Quantile(election, 1)),
			"x-slowest-to-fastest")
	}
}

// lastSign is the last sign of life in the object; both write it as renewTime, by the clock of this machine.
func (a *arena) lastSign(b *testing.B, name string) time.Time {
	object, err := a.elections.CoordinationV1().Leases(a.namespace).Get(b.Context(), name, metav1.GetOptions{})
	require.NoError(b, err)
	return object.Spec.RenewTime.Time
}

func leaseTakeover(b *testing.B, a *arena, name string, ttl time.Duration) time.Duration {
	settings := lease.Settings{HeartbeatTimeout: ttl, HeartbeatInterval: ttl * 2 / 15,
		OperationTimeout: time.Second}
	holder, next := a.lease(b, name, "a", settings), a.lease(b, name, "b", settings)
	require.Equal(b, sbr.Granted, linear.AnswerOf(holder.Acquire(b.Context(), lease.Proposal{})).Kind)
	granted := make(chan time.Time, 1)
	go func() {
		if out := linear.AnswerOf(next.AcquireWait(b.Context(), lease.Proposal{})); out.Kind == sbr.Granted {
			granted <- time.Now()
		}
	}()
	time.Sleep(ttl)
	holder.Close()
	last := a.lastSign(b, name)
	at := <-granted
	next.Close()
	return at.Sub(last)
}

func electionTakeover(b *testing.B, a *arena, name string, ttl time.Duration) time.Duration {
	leads := func(at chan<- time.Time) leaderelection.LeaderCallbacks {
		return leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { at <- time.Now() }}
	}
	first, second := make(chan time.Time, 1), make(chan time.Time, 1)
	crash, die := context.WithCancel(b.Context())
	defer die()
	end, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	one, two := a.elector(b, name, "a", ttl, leads(first)), a.elector(b, name, "b", ttl, leads(second))
	running.Go(func() { one.Run(crash) })
	<-first
	running.Go(func() { two.Run(end) })
	time.Sleep(ttl)
	die() // ReleaseOnCancel is off: nothing is given up
	last := a.lastSign(b, name)
	return (<-second).Sub(last)
}
