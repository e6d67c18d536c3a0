package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/faults"
)

func TestFaultMatrix(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	address := s.Address()
	target := &faults.Target{
		Name:    "PostgreSQL",
		Address: address,
		Open: func(t *faults.T, at, name string) lease.Store {
			role := "sbr"
			if at == address {
				role = "owner"
			}
			c, err := postgres.Config(fmt.Sprintf("postgres://%s@%s/%s", role, at, database), 5*time.Second)
			require.NoError(t, err)
			pool, err := pgxpool.NewWithConfig(context.Background(), c)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			store, err := postgres.New(pool, "", name)
			require.NoError(t, err)
			return store
		},
		Delete: func(_ context.Context, name string) error {
			s.sql(t, database, "DELETE FROM sbr_lease WHERE name = '"+name+"'")
			return nil
		},
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { s.Kill(); return nil },
				End:   func() error { s.restart(t); return nil },
			},
			faults.Withdrawn: {
				Begin: func() error { s.sql(t, database, "REVOKE INSERT, UPDATE ON sbr_lease FROM sbr"); return nil },
				End:   func() error { s.sql(t, database, "GRANT INSERT, UPDATE ON sbr_lease TO sbr"); return nil },
			},
		},
	}
	if disk, err := smallDisk(t); err == nil {
		junk := filepath.Join(disk, "junk")
		target.Wholes[faults.Full] = faults.Whole{
			Begin: func() error {
				s.moveTo(t, database, disk)
				if err := fill(junk); err != nil {
					return err
				}
				s.widen(t, database)
				return nil
			},
			End: func() error { return os.Remove(junk) },
		}
	} else {
		t.Logf("no disk is filled: %v", err)
	}
	faults.Matrix(t, target)
}

// smallDisk mounts a file system of its own for the user of the server, which only root can.
func smallDisk(t *testing.T) (string, error) {
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil { // the server is another user's
		return "", err
	}
	disk := filepath.Join(folder, "disk")
	require.NoError(t, os.Mkdir(disk, 0o700))
	mount := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=8m,mode=0700,uid=nobody",
		"sbr-test", disk)
	if out, err := mount.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mount: %w: %s", err, out)
	}
	t.Cleanup(func() { // the server may still run
		require.NoError(t, exec.Command("umount", "--lazy", disk).Run())
	})
	return disk, nil
}

// moveTo moves the table to a disk.
func (s *server) moveTo(t *testing.T, database, disk string) {
	s.sql(t, database, "CREATE TABLESPACE small LOCATION '"+disk+"'")
	s.sql(t, database, "ALTER TABLE sbr_lease SET TABLESPACE small, SET (autovacuum_enabled = off)")
}

// widen makes rows so large that no page has room for two: each write needs a new one. The disk is full
// before: a heartbeat between the two would own a second page, and write in them by turns.
func (s *server) widen(t *testing.T, database string) {
	s.sql(t, database, "ALTER TABLE sbr_lease ADD COLUMN room char(5000) NOT NULL DEFAULT repeat('x', 5000),"+
		" ALTER COLUMN room SET STORAGE PLAIN")
}

// fill writes until the disk takes no more.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
