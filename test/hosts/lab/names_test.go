package lab

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwner_IsReadFromTheName(t *testing.T) {
	for _, tc := range []struct {
		name string
		want owner
		ok   bool
	}{
		{labName(owner{7, 99}, "abc") + "-n1", owner{7, 99}, true},
		{labName(owner{7, 99}, "abc") + "-a-host", owner{7, 99}, true},
		{labName(owner{7, 99}, "abc"), owner{}, false},
		{"sbrlab-x-99-abc-n1", owner{}, false},
		{"sbrlab-7-x-abc-n1", owner{}, false},
		{"sbrlab--1-99-abc-n1", owner{}, false},
		{"sbrlab-0-99-abc-n1", owner{}, false},
		{"other-7-99-abc-n1", owner{}, false},
		{"", owner{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := parseOwner(tc.name)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestParseStart(t *testing.T) {
	const fields = " S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	start, err := parseStart("12 (a name) with (brackets))" + fields)
	require.NoError(t, err)
	require.Equal(t, uint64(4711), start)
	_, err = parseStart("12 (dead) Z 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0")
	require.ErrorIs(t, err, os.ErrProcessDone)
	_, err = parseStart("12 (short) S 1")
	require.Error(t, err)
	_, err = parseStart("")
	require.Error(t, err)
}

func TestValidName(t *testing.T) {
	for _, good := range []string{"n1", "a.b-c", "API"} {
		require.NoError(t, validName(good))
	}
	for _, bad := range []string{"", "-x", ".", "..", "a/b", "a b", "bridge", "n\n", "123456789012345678901234567890123"} {
		require.Error(t, validName(bad), bad)
	}
}

func TestOwner_AliveIsTheSameProcess(t *testing.T) {
	self, err := thisProcess()
	require.NoError(t, err)
	require.True(t, self.alive())
	self.start++
	require.False(t, self.alive(), "the number was given to another process since")
	require.False(t, owner{pid: 1 << 30, start: 1}.alive())
}
