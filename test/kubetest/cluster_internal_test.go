package kubetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
