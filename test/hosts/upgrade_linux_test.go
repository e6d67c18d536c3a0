package hosts_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

// upgradedFrom is the oldest commit whose members must work beside those of today.
const upgradedFrom = "a81a6a4a01ed3fc18abb1555e40de8e8afaff8ec"

// sbrOf is `sbr` as it was at a commit: built once, and kept.
func sbrOf(t *testing.T, commit string) string {
	t.Helper()
	root, err := buildcache.Root()
	require.NoError(t, err)
	dir, err := buildcache.Ensure(t.Context(), buildcache.Folder(root, "upgrade"), commit,
		func(dir string) error {
			return buildCommit(t.Context(), root, commit, dir)
		})
	require.NoError(t, err)
	return filepath.Join(dir, "sbr")
}

// buildCommit builds `sbr` of a commit into dir. Its sources are taken from the repository's history, and lie
// in dir for as long as that takes.
func buildCommit(ctx context.Context, root, commit, dir string) error {
	if said, err := git(ctx, root, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return fmt.Errorf("hosts: an upgrade from commit %s cannot be tested: it is not in this clone; "+
			"fetch the whole history with git fetch --unshallow (%s)", commit, strings.TrimSpace(said))
	}
	source := filepath.Join(dir, "source")
	archive := filepath.Join(dir, "source.tar")
	if said, err := git(ctx, root, "archive", "--output="+archive, commit); err != nil {
		return fmt.Errorf("hosts: git archive %s: %w: %s", commit, err, said)
	}
	if err := os.Mkdir(source, 0o755); err != nil {
		return fmt.Errorf("hosts: %w", err)
	}
	unpack := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", source)
	if said, err := unpack.CombinedOutput(); err != nil {
		return fmt.Errorf("hosts: tar: %w: %s", err, said)
	}
	if err := buildcache.Build(ctx, source, "", "./cmd/sbr", filepath.Join(dir, "sbr")); err != nil {
		return err
	}
	for _, path := range []string{source, archive} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
	}
	return nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	return said.String(), err
}

// A clone without history says so, and what to do.
func TestBuildCommit_NamesTheMissingHistory(t *testing.T) {
	t.Parallel()
	root, err := buildcache.Root()
	require.NoError(t, err)
	err = buildCommit(t.Context(), root, strings.Repeat("0123456789", 4), t.TempDir())
	require.ErrorContains(t, err, "git fetch --unshallow")
}

// upgrade ends `sbr agent` on hosts in good order, one after the other, and starts that of today in its
// place.
func (r *rig) upgrade(names ...string) {
	r.t.Helper()
	for _, name := range names {
		m := r.Member(name)
		m.SBR.SetProgram(sbrPath(r.t))
		exits := len(m.SBR.Exits())
		require.NoError(r.t, m.SBR.Process().Terminate())
		exit, err := m.SBR.WaitExit(r.within(time.Minute), exits+1)
		require.NoError(r.t, err)
		require.Zero(r.t, exit.Code, exit.Text)
		r.waitWhole(rejoinWithin, five...)
	}
}

// A cluster of an earlier version is upgraded host by host. In the middle of that it is cut, with both
// versions on both sides or one on each: exactly one side stays, the losers join it after the heal, and the
// rest is upgraded.
func TestUpgrade_WithACutInTheMiddle(t *testing.T) {
	for _, tc := range []struct {
		name  string
		mode  mode
		first []string // upgraded before the cut
		sides [][]string
	}{
		{"mixed sides", besideModule, []string{"n1", "n4"}, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}},
		{"a version on each side", besideDebian, []string{"n4", "n5"}, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}},
		{"mixed sides", ownNode, []string{"n2", "n5"}, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}},
	} {
		t.Run(tc.name+" "+tc.mode.name, func(t *testing.T) {
			t.Parallel()
			needsRoot(t)
			o := restarting(3)
			o.SBR = sbrOf(t, upgradedFrom)
			r := newRig(t, tc.mode, o)
			r.upgrade(tc.first...)
			before := len(r.downed())
			require.NoError(t, r.lab.Partition(tc.sides...))
			up := r.waitOneSide(resolveWithin)
			require.Contains(t, tc.sides, up, "one side, whole")
			require.Len(t, r.downed(), before+len(without(five, up)))
			require.NoError(t, r.lab.Heal())
			r.waitWhole(rejoinWithin, five...)
			r.upgrade(without(five, tc.first)...)
			r.verify()
		})
	}
}
