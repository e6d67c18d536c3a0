package etcd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// cluster is a running etcd cluster.
type cluster struct {
	t       testing.TB
	place   servers.Place
	program string
	folder  string
	members []*member
	args    []string // further ones of each server
}

// member is one of its servers.
type member struct {
	name         string
	client, peer string // URLs
	server       *process.Process
}

// durable is an argument that has the server write to the disk before it answers, as in production.
const durable = "--unsafe-no-fsync=false"

// newCluster starts a cluster of so many members, with further arguments, which ends with the test.
func newCluster(t testing.TB, size int, args ...string) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts real servers")
	}
	program, err := buildcache.Etcd.Ensure(t.Context(), os.Stderr)
	require.NoError(t, err)
	c := &cluster{t: t, place: servers.Loopback(), program: program, folder: t.TempDir(), args: args}
	t.Cleanup(c.stop)
	if !slices.Contains(args, durable) {
		c.args = append(c.args, "--unsafe-no-fsync")
	}
	for try := 1; ; try++ {
		c.members = nil
		for i := range size {
			name := fmt.Sprintf("m%d-%d", try, i)
			c.members = append(c.members, &member{name: name, client: c.freeURL(t), peer: c.freeURL(t)})
		}
		for _, m := range c.members {
			c.start(m)
		}
		if err = c.healthy(); err == nil {
			return c
		}
		for _, m := range c.members {
			m.server.Kill()
		}
		require.Less(t, try, servers.StartTries, "%v", err)
	}
}

func (c *cluster) freeURL(t testing.TB) string {
	t.Helper()
	address, err := c.place.FreeAddress()
	require.NoError(t, err)
	return "http://" + address
}

func (c *cluster) stop() {
	for _, m := range c.members {
		m.server.Kill()
	}
	c.place.Thread.Close()
}

// start starts a member, with the data that it had.
func (c *cluster) start(m *member) {
	c.t.Helper()
	peers := make([]string, len(c.members))
	for i, other := range c.members {
		peers[i] = other.name + "=" + other.peer
	}
	server, err := process.Start(c.place.Thread, process.Command{
		Name: "etcd " + m.name, Program: c.program, Log: filepath.Join(c.folder, m.name+".log"),
		Args: append([]string{
			"--name=" + m.name, "--data-dir=" + filepath.Join(c.folder, m.name),
			"--listen-client-urls=" + m.client, "--advertise-client-urls=" + m.client,
			"--listen-peer-urls=" + m.peer, "--initial-advertise-peer-urls=" + m.peer,
			"--initial-cluster=" + strings.Join(peers, ","), "--log-level=warn",
		}, c.args...),
	})
	require.NoError(c.t, err)
	m.server = server
}

// healthy waits until the cluster answers.
func (c *cluster) healthy() error {
	client := c.client(c.t)
	defer client.Close()
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		_, err := client.Get(ctx, "any")
		cancel()
		for _, m := range c.members {
			if !m.server.Alive() && err != nil {
				return fmt.Errorf("%s ended: %s", m.name, m.server.LastLogLine())
			}
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// client returns a new connection to all members.
func (c *cluster) client(t testing.TB) *clientv3.Client {
	t.Helper()
	urls := make([]string, len(c.members))
	for i, m := range c.members {
		urls[i] = m.client
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: urls, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
	})
	require.NoError(t, err)
	return client
}

// failover stops the leader, and returns when another member leads and answers. Then the old leader goes on.
func (c *cluster) failover(t testing.TB, stop, goOn func(leader *member)) {
	t.Helper()
	client := c.client(t)
	defer client.Close()
	leads := func(m *member) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, err := client.Status(ctx, m.client)
		return err == nil && status.Leader == status.Header.MemberId
	}
	old := slices.IndexFunc(c.members, leads)
	require.GreaterOrEqual(t, old, 0, "the cluster has no leader")
	stop(c.members[old])
	others := slices.Delete(slices.Clone(c.members), old, old+1)
	require.Eventually(t, func() bool { return slices.ContainsFunc(others, leads) }, 30*time.Second,
		10*time.Millisecond)
	require.NoError(t, c.healthy())
	goOn(c.members[old])
}
