package mongodb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// server is a running FerretDB.
type server struct {
	thread           *process.Thread
	program, address string
	folder           string
	process          *process.Process
}

// startTries is how often a server is started whose port somebody else took.
const startTries = 5

// newServer starts a server, which ends with the test.
func newServer(t testing.TB) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a real server")
	}
	program, err := buildcache.FerretDB.Ensure(t.Context(), os.Stderr)
	require.NoError(t, err)
	folder, err := os.MkdirTemp("", "ferretdb") //nolint:usetesting // short: the path of a socket is
	require.NoError(t, err)
	s := &server{thread: process.NewThread(), program: program, folder: folder}
	t.Cleanup(func() {
		s.process.Kill()
		s.thread.Close()
		_ = os.RemoveAll(folder)
	})
	for try := 1; ; try++ {
		s.address = freeAddress(t)
		s.start(t)
		if err = s.healthy(t); err == nil {
			return s
		}
		s.process.Kill()
		require.Less(t, try, startTries, "%v", err)
	}
}

// start starts the server with the data that it had.
func (s *server) start(t testing.TB) {
	t.Helper()
	var err error
	s.process, err = process.Start(s.thread, process.Command{
		Name: "ferretdb", Program: s.program, Args: []string{"-listen", s.address, "-data", s.folder},
		Log: filepath.Join(s.folder, "log"),
	})
	require.NoError(t, err)
}

// restart ends it as abruptly as it can happen.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.process.Kill()
	s.start(t)
	require.NoError(t, s.healthy(t))
}

// healthy waits until the server answers.
func (s *server) healthy(t testing.TB) error {
	client := s.client(t, nil)
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := client.Ping(ctx, nil)
		cancel()
		if err != nil && !s.process.Alive() {
			return fmt.Errorf("the server ended: %s", s.process.LastLogLine())
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func (s *server) uri() string { return "mongodb://" + s.address }

// client returns a new client, which ends with the test. seen is told of each command; it may be nil.
func (s *server) client(t testing.TB, seen func(bson.Raw)) *mongo.Client {
	t.Helper()
	opts := mongodb.Options(s.uri(), 5*time.Second)
	if seen != nil {
		opts.SetMonitor(&event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) { seen(e.Command) }})
	}
	client, err := mongo.Connect(opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client
}

// freeAddress returns an address on loopback that nobody listens on, from below the ephemeral range.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, l.Close())
			return address
		}
	}
	require.Fail(t, "no free port")
	return ""
}
