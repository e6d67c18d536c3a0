// Package binaries builds, once per version, the kube-apiserver and etcd that package kubetest runs, and says where they are.
//
// The sources are Go modules named by test/kube/go.mod. The finished programs lie in .cache/kube of the repository, or in the
// folder that SBR_KUBE_CACHE names, under a name made of everything the build depends on: a folder that is there is complete
// and up to date, so a second call costs only a "go env".
package binaries
