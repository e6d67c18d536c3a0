package kubernetes_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// world is an API server with one lease, and an administrator. The contract runs against the emulation and
// against the real one, so that the other tests may trust the emulation. What any store must do is in
// leasetest.Run; this is what the object adds to it.
type world interface {
	store(t *testing.T) *kubernetes.Store
	// apply creates the lease or merges into it, as an administrator does.
	apply(t *testing.T, patch object)
	remove(t *testing.T)
	stored(t *testing.T) object
}

var contract = map[string]func(*testing.T, world){
	"a write clears what is gone": func(t *testing.T, w world) {
		s := w.store(t)
		held := mustWrite(t, s, record("a", 1), "")
		free := lease.Record{Token: 2, Nonce: "released", Verdict: record("a", 1).Verdict}
		require.Equal(t, free, mustWrite(t, s, free, held.Version).Record)
		require.Equal(t, object{"holderIdentity": "", "leaseTransitions": 2.0}, w.stored(t)["spec"])
	},
	"keeps what is not ours": func(t *testing.T, w world) {
		s := w.store(t)
		w.apply(t, object{
			"metadata": object{"labels": object{"team": "a"}, "annotations": object{"note": "mine"}, "finalizers": []any{"example.com/x"}},
			"spec":     object{"holderIdentity": "kubectl"},
		})
		defer w.apply(t, object{"metadata": object{"finalizers": []any{}}})
		snapshot, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, lease.Record{Holder: "kubectl"}, snapshot.Record)
		mustWrite(t, s, record("a", 1), snapshot.Version)
		metadata := w.stored(t)["metadata"].(object)
		require.Equal(t, object{"team": "a"}, metadata["labels"])
		require.Equal(t, "mine", metadata["annotations"].(object)["note"])
		require.Equal(t, []any{"example.com/x"}, metadata["finalizers"])
	},
	"a lease without annotations": func(t *testing.T, w world) {
		s := w.store(t)
		w.apply(t, object{"spec": object{}})
		snapshot, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, lease.Record{}, snapshot.Record)
		require.NotEmpty(t, snapshot.Version)
		mustWrite(t, s, record("a", 1), snapshot.Version)
	},
	"conflicts": func(t *testing.T, w world) {
		s := w.store(t)
		first := mustWrite(t, s, record("a", 1), "")
		conflict := func(prev lease.Version, why string) {
			t.Helper()
			before := w.stored(t)
			_, err := s.Write(t.Context(), record("b", 2), prev)
			require.ErrorIs(t, err, lease.ErrConflict, why)
			require.NotErrorIs(t, err, lease.ErrRefused)
			require.Equal(t, before, w.stored(t))
		}
		version := func() string { return w.stored(t)["metadata"].(object)["resourceVersion"].(string) }
		second := mustWrite(t, s, record("a", 2), first.Version)
		uid, _, _ := strings.Cut(string(first.Version), "/")
		conflict(lease.Version(uid+"/1"+version()), "a version of the future")
		w.remove(t)
		conflict(second.Version, "deleted")
		mustWrite(t, s, record("c", 1), "")
		conflict(second.Version, "deleted and created again")
		conflict(lease.Version(uid+"/"+version()),
			"another object that has the same version, after a restored backup")
	},
	"the annotations of others leave too little room": func(t *testing.T, w world) {
		s := w.store(t)
		w.apply(t, object{"metadata": object{"annotations": object{"other": strings.Repeat("x", 250<<10)}}})
		snapshot, err := s.Read(t.Context())
		require.NoError(t, err)
		large := record("a", 1)
		large.Verdict.Reason = randomText(20 << 10)
		before := w.stored(t)
		_, err = s.Write(t.Context(), large, snapshot.Version)
		require.ErrorIs(t, err, lease.ErrTooLarge)
		require.ErrorIs(t, err, lease.ErrRefused)
		require.ErrorContains(t, err, "/"+testName)
		require.ErrorContains(t, err, "annotations")
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 1000)
		require.Equal(t, before, w.stored(t))
		held := mustWrite(t, s, record("a", 1), snapshot.Version)
		mustWrite(t, s, record("a", 2), held.Version) // a heartbeat needs no more room
	},
	"a large record": func(t *testing.T, w world) {
		s := w.store(t)
		large := record("a", 1)
		large.Verdict.Reason = randomText(140 << 10)
		snapshot := mustWrite(t, s, large, "")
		require.Equal(t, large, snapshot.Record)
		small := mustWrite(t, s, record("a", 2), snapshot.Version)
		require.Equal(t, record("a", 2), small.Record)
	},
	"another elector": func(t *testing.T, w world) {
		s := w.store(t)
		mustWrite(t, s, record("a", 3), "")
		w.apply(t, object{"spec": object{"holderIdentity": "b", "leaseTransitions": 9, "leaseDurationSeconds": 15}})
		snapshot, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, "b", snapshot.Record.Holder)
		require.Empty(t, snapshot.Record.Nonce)
		require.EqualValues(t, 9, snapshot.Record.Token)
		require.Equal(t, record("a", 3).Verdict, snapshot.Record.Verdict)
	},
	"preflight changes nothing": func(t *testing.T, w world) {
		s := w.store(t)
		require.NoError(t, s.Preflight(t.Context()))
		require.Nil(t, w.stored(t))
		mustWrite(t, s, record("a", 1), "")
		before := w.stored(t)
		require.NoError(t, s.Preflight(t.Context()))
		require.Equal(t, before, w.stored(t))
	},
}

// ofNative are the parts of the contract that speak of the native object; the custom resources have their own
// in custom_test.go.
var ofNative = []string{"a write clears what is gone", "keeps what is not ours",
	"a lease without annotations", "another elector"}

func runContract(t *testing.T, w func(t *testing.T) world, but ...string) {
	for _, name := range slices.Sorted(maps.Keys(contract)) {
		if slices.Contains(but, name) {
			continue
		}
		t.Run(name, func(t *testing.T) { contract[name](t, w(t)) })
	}
}

func TestContract_Emulation(t *testing.T) {
	runContract(t, func(t *testing.T) world { return fakeWorld{kubefake.New(t)} })
}

func TestContract_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	runContract(t, func(t *testing.T) world { return newRealWorld(t, cluster) })
}

func TestContract_CustomResource(t *testing.T) {
	cluster := kubetest.Shared(t)
	runContract(t, func(t *testing.T) world { return newCustomWorld(t, cluster, kubernetes.Akka) }, ofNative...)
}

type fakeWorld struct{ api *kubefake.API }

func (w fakeWorld) store(t *testing.T) *kubernetes.Store { return newStore(t, w.api) }
func (w fakeWorld) remove(*testing.T)                    { w.api.Remove(testName) }
func (w fakeWorld) stored(*testing.T) object             { return w.api.Stored(testName) }

func (w fakeWorld) apply(_ *testing.T, patch object) {
	w.api.With(func() {
		old := kubefake.Clone(w.api.Leases[testName])
		if old == nil {
			old = object{}
		}
		w.api.PutLocked(testName, kubefake.Merge(old, toJSON(patch)).(object))
	})
}

func toJSON(o object) (out object) {
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// Against the emulation the suite runs beside the package.
func TestConformance_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	runConformance(t, func(t *testing.T) realWorld { return newRealWorld(t, cluster) })
}

func TestConformance_CustomResource(t *testing.T) {
	cluster := kubetest.Shared(t)
	for _, api := range []kubernetes.API{kubernetes.Akka, kubernetes.Pekko} {
		t.Run(string(api), func(t *testing.T) {
			runConformance(t, func(t *testing.T) realWorld { return newCustomWorld(t, cluster, api) })
		})
	}
}

func runConformance(t *testing.T, newWorld func(t *testing.T) realWorld) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		w := newWorld(t)
		proxy := kubetest.NewProxy(t, w.kubeconfig)
		w.kubeconfig = proxy.Kubeconfig()
		var stores []*kubernetes.Store
		return leasetest.Harness{
			Open: func(testing.TB, string) lease.Store {
				s := warm(t, w.store(t))
				stores = append(stores, s)
				if w.api.Custom() {
					return plain{s, s}
				}
				return s
			},
			Delete: func(testing.TB) { w.remove(t) },
			Interrupt: func(testing.TB) {
				proxy.SetFault(func(*http.Request) kubetest.Fault { return kubetest.Fault{Kind: kubetest.FaultDropRequest} })
				for _, s := range stores {
					_, err := s.Read(t.Context()) // takes the connection down, and with it the watch
					require.Error(t, err)
				}
				proxy.SetFault(nil)
			},
		}
	})
}
