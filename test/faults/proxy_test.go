package faults_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/faults"
)

// A proxy that refuses keeps its port: another server that got it would answer in its place.
func TestProxy_KeepsItsPortWhileItRefuses(t *testing.T) {
	var cell faults.T
	t.Cleanup(func() { cell.Finish() })
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = server.Close() }()
	proxy := faults.NewProxy(&cell, server.Addr().String(), func() {})
	for range 3 {
		proxy.Set(faults.Refuse, false)
		_, err = net.Dial("tcp", proxy.Address())
		require.ErrorContains(t, err, "refused")
		_, err = net.Listen("tcp", proxy.Address())
		require.ErrorContains(t, err, "in use")
		proxy.Set(faults.Pass, false)
		client, err := net.Dial("tcp", proxy.Address())
		require.NoError(t, err)
		require.NoError(t, client.Close())
	}
}
