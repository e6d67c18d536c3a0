package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// versions collects them and insists that none comes twice.
type versions struct {
	t    *testing.T
	s    *Store
	seen map[lease.Version]string
}

func (v *versions) add(what string) lease.Snapshot {
	v.t.Helper()
	got := mustRead(v.t, v.s)
	require.NotEmpty(v.t, got.Version)
	require.NotContains(v.t, v.seen, got.Version, "%s has the version of: %s", what, v.seen[got.Version])
	v.seen[got.Version] = what
	require.Equal(v.t, got, mustRead(v.t, newStore(v.t, v.s.path)),
		"everybody sees the same version, again and again")
	return got
}

func newVersions(t *testing.T) *versions {
	return &versions{t: t, s: newStore(t, newPath(t)), seen: map[lease.Version]string{}}
}

func TestVersion_EqualRecordsHaveDifferentOnes(t *testing.T) {
	v := newVersions(t)
	prev := lease.Version("")
	for range 5 {
		require.Equal(t, mustWrite(t, v.s, record("a", 1), prev), v.add("an equal write"))
		prev = mustRead(t, v.s).Version
	}
	require.NoError(t, os.Remove(v.s.path))
	mustWrite(t, v.s, record("a", 1), "")
	v.add("made anew")
}

// An older copy that is put back is bytes that were there before. A write that was meant for them must not
// find them again.
func TestVersion_ARestoredCopyIsNotTheOriginal(t *testing.T) {
	for name, c := range map[string]struct {
		keep, restore func(path, backup string) error
	}{
		"copied over it":    {keep: copyFile, restore: func(path, backup string) error { return copyFile(backup, path) }},
		"moved over it":     {keep: copyFile, restore: func(path, backup string) error { return os.Rename(backup, path) }},
		"the very file":     {keep: os.Link, restore: func(path, backup string) error { return os.Rename(backup, path) }},
		"moved out and in":  {keep: os.Rename, restore: func(path, backup string) error { return os.Rename(backup, path) }},
		"cp --preserve=all": {keep: cp, restore: func(path, backup string) error { return cp(backup, path) }},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVersions(t)
			backup := filepath.Join(t.TempDir(), "backup") // the same file system
			mustWrite(t, v.s, record("a", 1), "")
			first := v.add("the original")
			require.NoError(t, c.keep(v.s.path, backup))
			mustWrite(t, v.s, record("b", 2), mustRead(t, v.s).Version)
			v.add("the next one")
			require.NoError(t, c.restore(v.s.path, backup))
			restored := v.add("the restored one")
			require.Equal(t, first.Record, restored.Record)
			_, err := v.s.Write(t.Context(), record("c", 2), first.Version)
			require.ErrorIs(t, err, lease.ErrConflict)
			mustWrite(t, v.s, record("c", 2), restored.Version)
		})
	}
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

func cp(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

func TestVersion_AHandsEditIsAChange(t *testing.T) {
	v := newVersions(t)
	mustWrite(t, v.s, record("a", 1), "")
	before := v.add("ours")
	text := mustReadFile(t, v.s.path)

	// in place, our own fields as they were
	mustWriteFile(t, v.s.path, strings.Replace(text, `"holder": "a"`, `"holder": ""`, 1))
	freed := v.add("freed by hand")
	require.Empty(t, freed.Record.Holder)
	_, err := v.s.Write(t.Context(), record("a", 1), before.Version)
	require.ErrorIs(t, err, lease.ErrConflict)

	mustWriteFile(t, v.s.path, text)
	v.add("and put back by hand")

	replaced := v.s.path + ".new"
	mustWriteFile(t, replaced, text)
	require.NoError(t, os.Rename(replaced, v.s.path)) // as editors do
	v.add("saved without a change")
	mustWrite(t, v.s, record("b", 2), mustRead(t, v.s).Version)
}
