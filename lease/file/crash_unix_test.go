//go:build unix

package file

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func init() {
	children["writes and dies"] = writesAndDies
}

// steps are the places where a write can die, in order.
var steps = []string{
	"before create", "after create", "half written", "before sync", "after sync", "before rename", "after rename", "before sync dir", "after sync dir",
}

// diesAt puts the end of this process at one step.
func diesAt(y *system, step string) {
	at := func(here string) {
		if here == step {
			die()
		}
	}
	real := *y
	y.Create = func(path string, flag int, mode os.FileMode) (*os.File, error) {
		at("before create")
		f, err := real.Create(path, flag, mode)
		at("after create")
		if step == "half written" {
			_, _ = f.WriteString(`{"format": 1, "holder": "`)
		}
		at("half written")
		return f, err
	}
	y.Sync = func(f *os.File) error { at("before sync"); defer at("after sync"); return real.Sync(f) }
	y.Rename = func(a, b string) error { at("before rename"); defer at("after rename"); return real.Rename(a, b) }
	y.SyncDir = func(dir string) error { at("before sync dir"); defer at("after sync dir"); return real.SyncDir(dir) }
}

func writesAndDies() error {
	s, err := openStore(os.Getenv("CHILD_PATH"), nil)
	if err != nil {
		return err
	}
	got, err := s.Read(context.Background())
	if err != nil {
		return err
	}
	diesAt(&s.system, os.Getenv("CHILD_STEP"))
	_, err = s.Write(context.Background(), record("child", got.Record.Token+1), got.Version)
	return fmt.Errorf("still alive: %w", err)
}

// Wherever a writer is killed, the old record stands or the new one, the lock is free, and what it left
// behind is removed.
func TestCrash_AtEachStep(t *testing.T) {
	for _, present := range []bool{false, true} {
		for i, step := range steps {
			t.Run(fmt.Sprintf("present=%v/%s", present, step), func(t *testing.T) {
				s := newStore(t, newPath(t))
				before := lease.Snapshot{}
				if present {
					before = mustWrite(t, s, record("a", 1), "")
				}
				start(t, "writes and dies", "CHILD_PATH="+s.path, "CHILD_STEP="+step).wait(true)
				got := mustRead(t, s)
				if i < 6 { // before the replacement
					require.Equal(t, before, got)
				} else {
					require.Equal(t, record("child", before.Record.Token+1), got.Record)
				}
				left := leftovers(t, s)
				if 1 <= i && i <= 5 {
					require.Len(t, left, 1)
					old := time.Now().Add(-time.Hour)
					require.NoError(t, os.Chtimes(s.dir+"/"+left[0], old, old))
				} else {
					require.Empty(t, left)
				}
				s.tidied = time.Time{}
				mustWrite(t, s, record("b", 5), got.Version)
				require.Empty(t, leftovers(t, s))
			})
		}
	}
}

func leftovers(t *testing.T, s *Store) (left []string) {
	for _, name := range names(t, s.path) {
		if s.isTemp(name) {
			left = append(left, name)
		}
	}
	return left
}
