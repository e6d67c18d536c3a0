package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSingleton_Margin(t *testing.T) {
	require.Equal(t, 20*time.Second, parse(t, "system: payments").Margin(), "that of the resolver")
	require.Equal(t, 7*time.Second, parse(t, "system: payments\nsplit-brain-resolver: {stable-after: 7s}").Margin())
	require.Equal(t, time.Minute, parse(t, "system: payments\nsingleton: {removal-margin: 1m}").Margin())
}

// Each singleton has a lease of its own, named after it, where and how the block of the implementation says.
func TestSingleton_Lease(t *testing.T) {
	f := parse(t, "system: payments\nsingleton: {use-lease: file}\nlease: {file: {path: /run/sbr.lease}, kubernetes: {namespace: shop}}")
	require.Equal(t, "payments-singleton-backup", f.SingletonLeaseName("backup"))
	var file struct {
		Path string `yaml:"path"`
	}
	require.NoError(t, f.SingletonLease("backup")(&file))
	require.Equal(t, "/run/sbr.lease.singleton-backup", file.Path)
	require.Equal(t, "/run/sbr.lease", f.Lease.File.Path)

	f.Singleton.UseLease = "kubernetes"
	var kubernetes struct {
		Namespace string `yaml:"namespace"`
	}
	require.NoError(t, f.SingletonLease("backup")(&kubernetes))
	require.Equal(t, "shop", kubernetes.Namespace)
}
