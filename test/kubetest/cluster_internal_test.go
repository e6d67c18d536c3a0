package kubetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

func TestPorts_LostRaceIsTold(t *testing.T) {
	c := Shared(t)
	taken := "--listen-client-urls=" + c.store
	etcd, err := startServer(c.place.Thread, "etcd", filepath.Join(t.TempDir(), "log"), c.bin.Etcd,
		"--data-dir="+t.TempDir(), taken, "--advertise-client-urls="+c.store, "--listen-peer-urls=http://127.0.0.1:0", "--log-level=warn")
	require.NoError(t, err)
	requireAddressInUse(t, etcd)

	server, err := startServer(c.place.Thread, "kube-apiserver", filepath.Join(t.TempDir(), "log"), c.bin.APIServer, c.apiServerFlags()...)
	require.NoError(t, err)
	requireAddressInUse(t, server)
}

func requireAddressInUse(t *testing.T, p *server) {
	t.Helper()
	t.Cleanup(p.kill)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	err := p.await(ctx, func(context.Context) error { return errors.New("still there") })
	var ended *exitError
	require.ErrorAs(t, err, &ended)
	require.True(t, ended.addressInUse(), err)
}

func TestOnFreshPorts_TriesAgainOnlyAfterALostRace(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log, []byte("listen tcp 127.0.0.1:1: bind: address already in use\n"), 0o600))
	s := process.NewThread()
	defer s.Close()
	calls := 0
	lost := func() error {
		calls++
		p, err := startServer(s, "sh", log, "/bin/sh", "-c", "echo bind: address already in use; exit 1")
		require.NoError(t, err)
		<-p.Exited()
		return &exitError{p}
	}
	require.ErrorContains(t, onFreshPorts(lost), "lost the race")
	require.Equal(t, servers.StartTries, calls)

	other := errors.New("other")
	require.ErrorIs(t, onFreshPorts(func() error { return other }), other)

	p, err := startServer(s, "sh", log, "/bin/sh", "-c", "exit 1")
	require.NoError(t, err)
	<-p.Exited()
	require.False(t, (&exitError{p}).addressInUse(), "what an earlier process logged is not this one's")
}

func TestFolder_LeftoversAreRemoved(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	inUse, err := openFolder("")
	require.NoError(t, err)
	abandoned := filepath.Join(parent, folderPrefix+"abandoned")
	fresh := filepath.Join(parent, folderPrefix+"fresh")
	foreign := filepath.Join(parent, "foreign")
	for _, dir := range []string{abandoned, fresh, foreign} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	old := time.Now().Add(-2 * leftoverAge)
	for _, dir := range []string{abandoned, foreign, inUse.path} {
		require.NoError(t, os.Chtimes(dir, old, old))
	}
	next, err := openFolder("")
	require.NoError(t, err)
	require.NoDirExists(t, abandoned)
	require.DirExists(t, fresh)
	require.DirExists(t, foreign)
	require.DirExists(t, inUse.path)

	require.NoError(t, inUse.close())
	require.NoError(t, next.close())
	require.NoDirExists(t, next.path)
}

func TestFolder_NamedIsKeptAndNotShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	first, err := openFolder(dir)
	require.NoError(t, err)
	_, err = openFolder(dir)
	require.ErrorContains(t, err, "another cluster uses it")
	require.NoError(t, first.close())
	require.DirExists(t, dir)
}

func TestPoll_LastWordAndCause(t *testing.T) {
	word := errors.New("not yet")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 5*pollEvery, errors.New("gave up"))
	defer cancel()
	err := poll(ctx, func() error { return word })
	require.ErrorIs(t, err, word)
	require.EqualError(t, err, "not yet (gave up)")
}
