package filelock_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/filelock"
)

func TestTry_OneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Try(path)
	require.NoError(t, err)
	require.NotNil(t, first)

	second, err := filelock.Try(path)
	require.NoError(t, err)
	require.Nil(t, second)

	require.NoError(t, first.Close())
	third, err := filelock.Try(path)
	require.NoError(t, err)
	require.NotNil(t, third)
	require.NoError(t, third.Close())
}

func TestTry_NoFolder(t *testing.T) {
	_, err := filelock.Try(filepath.Join(t.TempDir(), "absent", "lock"))
	require.ErrorContains(t, err, "absent")
}
