package downing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// remembering is a memory that an earlier process has left.
func remembering(t *testing.T, content string) *downing.Memory {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.json"), []byte(content), 0o600))
	return openMemory(t, dir)
}

func openMemory(t *testing.T, dir string) *downing.Memory {
	t.Helper()
	m := downing.NewMemory(dir, "payments")
	require.NoError(t, m.Open())
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestMemory_Open(t *testing.T) {
	dir := t.TempDir()
	first := openMemory(t, filepath.Join(dir, "new"))
	err := downing.NewMemory(filepath.Join(dir, "new"), "payments").Open()
	require.ErrorIs(t, err, downing.ErrMemoryBusy, "one process at a time, or nothing would be proved by it")
	require.NoError(t, first.Close())
	openMemory(t, filepath.Join(dir, "new"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "payments.json"), []byte("junk"), 0o600))
	err = downing.NewMemory(dir, "payments").Open()
	require.ErrorContains(t, err, "payments.json")
	err = downing.NewMemory(filepath.Join(dir, "payments.json"), "payments").Open()
	require.ErrorContains(t, err, "the state folder")
}

// A member that crashed and is started again with its memory proves by that that its earlier incarnation has
// ended: nothing needs to be decided. Without it the earlier one is a suspect until a verdict says that it is
// out.
func TestMemory_ASuccessorProvesTheEnd(t *testing.T) {
	for name, kept := range map[string]bool{"kept": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			onDisks(t, nil, func(t *testing.T, c *cluster) {
				c.Form(3)
				require.NoError(t, c.Member("n3").Serf.Shutdown()) // as if it had crashed
				c.Eventually(time.Minute, "n3 is a suspect",
					func() bool { return c.provider("n1").Status().State == sbr.StateSuspended })
				<-c.provider("n3").Done()
				if !kept {
					c.disks.lose("n3")
				}
				c.Boot("n3", "n1")
				if kept {
					c.Eventually(15*time.Second, "whole again",
						func() bool { return len(c.Up()) == 3 && c.provider("n1").Status().State == sbr.StateUp })
					require.Zero(t, c.Store.Snapshot().Record.Token, "nothing was decided")
					return
				}
				c.requireWhole(2*time.Minute, "n1", "n2", "n3")
				require.EqualValues(t, 1, c.Store.Snapshot().Record.Token)
			})
		})
	}
}

// What a member could not reach, and nothing was decided about, is a suspect for its next process, although
// Serf has forgotten it, and the cluster that it finds does not miss them.
func TestMemory_SuspectsOutliveTheProcess(t *testing.T) {
	virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		c.Form(2)
		c.Options.Config = func(n string, cfg *downing.Config) {
			clustertest.MajorityFirst(n, cfg)
			cfg.Memory = remembering(t, fmt.Sprintf(`{"incarnation": "n3#old", "members": [{"id": %q},
				{"id": "n8#x", "address": "10.0.0.8:7946", "suspect": true}, {"id": "n9#x", "suspect": true}]}`,
				c.provider("n1").Peers().Self))
		}
		c.Boot("n3", "n1", "n2")
		c.Eventually(2*time.Minute, "decided", func() bool { return c.Store.Snapshot().Record.Token == 1 })
		v := c.Store.Snapshot().Record.Verdict
		require.Len(t, v.Survivors, 3)
		require.Equal(t, []sbr.ID{"n8#x", "n9#x"}, v.Down)
		gone := c.provider("n3").Peers().Gone
		require.Len(t, gone, 2)
		require.True(t, gone[0].Unseen && gone[1].Unseen, "this process has not seen what they served")
	})
}

// A state file that cannot be written, because the disk is full, is tried again now and then, and the status
// says so until it is written.
func TestMemory_CannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	staged := filepath.Join(dir, "payments.json.new")
	virtual(t, func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		if name == "n1" {
			c.Memory = openMemory(t, dir)
		}
	}, func(t *testing.T, c *cluster) {
		c.Form(2)
		require.NoError(t, os.Mkdir(staged, 0o700))
		c.Boot("n3", "n1")
		c.Whole(3)
		time.Sleep(5 * time.Minute)
		require.Contains(t, c.provider("n1").Status().StateFile, "payments.json.new")
		require.NoError(t, os.Remove(staged))
		time.Sleep(time.Minute)
		require.Empty(t, c.provider("n1").Status().StateFile)
		kept, err := os.ReadFile(filepath.Join(dir, "payments.json"))
		require.NoError(t, err)
		require.Contains(t, string(kept), "n3#")
	})
}

// A survivor that has left in peace while it did not reach the store is remembered: after a stop of the whole
// cluster nobody waits for it. Without folders it is waited for as if it had crashed: more than half of the
// survivors' hosts are here, so the lease decides.
func TestMemory_NobodyWaitsForASurvivorThatLeft(t *testing.T) {
	long(t)
	for name, kept := range map[string]bool{"kept": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			play := virtual
			if kept {
				play = onDisks
			}
			play(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
				c.afterOneVerdict()
				c.Member("n4").Store.SetUnavailable(true)
				require.NoError(t, c.Member("n4").Leave())
				time.Sleep(10 * time.Second)
				for _, n := range []string{"n1", "n2", "n3"} { // power loss
					require.NoError(t, c.Member(n).Serf.Shutdown())
					<-c.provider(n).Done()
				}
				c.Boot("n1")
				c.Boot("n2", "n1")
				c.Boot("n3", "n1")
				time.Sleep(10 * time.Second)
				if kept {
					c.requireWhole(time.Second, "n1", "n2", "n3")
					return
				}
				require.Equal(t, []string{"n4"}, c.provider("n1").Status().Awaiting)
				c.requireWhole(2*time.Minute, "n1", "n2", "n3") // they have its place among them, and are more than half
			})
		})
	}
}
