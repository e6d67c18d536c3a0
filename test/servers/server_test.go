package servers_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

func TestStartSomewhere_SaysWhatFailedAndWhere(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	place := servers.Loopback()
	t.Cleanup(place.Thread.Close)
	starts := 0
	s := servers.Server{
		Place: place, Ping: func(context.Context) error { return errors.New("nobody is there") },
		Command: func(string) (process.Command, error) {
			starts++
			return process.Command{Name: "a server", Program: "/bin/sh", Args: []string{"-c", "echo no room; exit 3"},
				Log: log}, nil
		},
	}
	require.EqualError(t, s.StartSomewhere(t.Context()),
		"servers: a server ended (exit status 3): no room; its log: "+log)
	require.Equal(t, servers.StartTries, starts, "somebody may have taken its port")
}
