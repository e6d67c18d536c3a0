// Package etcd tests lease/etcd against real etcd clusters, which it starts on loopback from the program that
// kubetest builds.
package etcd
