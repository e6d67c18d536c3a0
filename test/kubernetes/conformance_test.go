package kubernetes_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

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
