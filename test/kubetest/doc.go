// Package kubetest runs a real kube-apiserver on a real etcd for tests: both on loopback, in a temporary
// folder, with RBAC on.
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }
//
//	func TestSomething(t *testing.T) {
//		cluster := kubetest.Shared(t)
//		kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), cluster.Namespace(t), "payments-sbr")
//		...
//	}
//
// [Shared] is one cluster for all tests of a process; a test that kills or pauses something takes its own
// from [New]. The two programs are built on first use, which takes minutes: run "go run -C test
// ./buildcache/build etcd kube-apiserver" before the tests.
//
// [Proxy] stands in front of the API server, counts requests and injects faults.
//
// Guarantees: no process outlives the test process, even a killed one (on Linux); ports are loopback only; a
// failed start says which program failed and where its log is.
//
// Non-guarantees: durability. Etcd does not sync to disk, and Stop kills both programs.
package kubetest
