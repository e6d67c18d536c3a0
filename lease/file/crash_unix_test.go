//go:build unix

package file

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func init() {
	children["writes and dies"] = writesAndDies
	children["writes"] = writes
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
	y.create = func(path string, mode os.FileMode) (*os.File, error) {
		at("before create")
		f, err := real.create(path, mode)
		at("after create")
		if step == "half written" {
			_, _ = f.WriteString(`{"format": 1, "holder": "`)
		}
		at("half written")
		return f, err
	}
	y.syncFile = func(f *os.File) error { at("before sync"); defer at("after sync"); return real.syncFile(f) }
	y.rename = func(a, b string) error { at("before rename"); defer at("after rename"); return real.rename(a, b) }
	y.syncDir = func(dir string) error { at("before sync dir"); defer at("after sync dir"); return real.syncDir(dir) }
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

// Wherever a writer is killed, the old record stands or the new one, the lock is free, and what it left behind is removed.
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

// patterned is a record whose parts all say the token, so that a mixture of two is noticed, and of many pages.
func patterned(token uint64) lease.Record {
	r := record("w"+strconv.FormatUint(token, 10), token)
	for i := range 300 {
		r.Verdict.Survivors = append(r.Verdict.Survivors, sbr.ID(fmt.Sprintf("m%03d@%d", i, token)))
	}
	r.Verdict.Normalize()
	return r
}

// writes counts on and says each token before it is written and after.
func writes() error {
	s, err := openStore(os.Getenv("CHILD_PATH"), nil)
	if err != nil {
		return err
	}
	for ctx := context.Background(); ; {
		got, err := s.Read(ctx)
		if err != nil {
			return err
		}
		token := got.Record.Token + 1
		fmt.Println("writing", token)
		if _, err := s.Write(ctx, patterned(token), got.Version); err != nil {
			return err
		}
		fmt.Println("written", token)
	}
}

// A writer is killed at random moments, over and over, while others read and watch: none of them ever sees anything but a whole
// record, tokens never go back, and what was acknowledged is there.
func TestCrash_KilledInALoop(t *testing.T) {
	s := newStore(t, newPath(t))
	reading, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	reads := make([]int, 3)
	for i := range reads {
		reader := newStore(t, s.path)
		readers.Go(func() { reads[i] = readOnAndOn(reading, t, reader) })
	}
	readers.Go(func() { watchOnAndOn(reading, t, newStore(t, s.path)) })

	const rounds = 25
	acknowledged := uint64(0)
	for range rounds {
		c := start(t, "writes", "CHILD_PATH="+s.path)
		first, ok := c.line()
		require.True(t, ok, "%s", c.stderr.String())
		death := time.AfterFunc(time.Duration(rand.N(int64(30*time.Millisecond))), func() { _ = c.cmd.Process.Kill() })
		begun := uint64(0)
		for _, line := range append([]string{first}, c.rest()...) {
			var token uint64
			if _, err := fmt.Sscanf(line, "written %d", &token); err == nil {
				acknowledged = token
			}
			if _, err := fmt.Sscanf(line, "writing %d", &token); err == nil {
				begun = token
			}
		}
		death.Stop()
		c.wait(true)
		got := mustRead(t, s)
		require.GreaterOrEqual(t, got.Record.Token, acknowledged, "what was acknowledged is there")
		require.LessOrEqual(t, got.Record.Token, begun, "and nothing that was not begun")
	}
	stop()
	readers.Wait()
	require.Positive(t, acknowledged)
	for _, n := range reads {
		require.Greater(t, n, rounds)
	}
	t.Logf("%d writes acknowledged, %v reads, %d temporary files left by %d killed writers", acknowledged, reads, len(leftovers(t, s)), rounds)
	require.LessOrEqual(t, len(leftovers(t, s)), rounds)
}

func readOnAndOn(ctx context.Context, t *testing.T, s *Store) (n int) {
	for newest := uint64(0); ; n++ {
		got, err := s.Read(ctx)
		if ctx.Err() != nil {
			return n
		}
		if err != nil {
			t.Errorf("a torn record: %v", err)
			return n
		}
		whole(t, got, newest)
		newest = got.Record.Token
	}
}

func watchOnAndOn(ctx context.Context, t *testing.T, s *Store) {
	newest := uint64(0)
	_ = lease.Follow(ctx, s, lease.Pace{}, nil, func(got lease.Snapshot) {
		whole(t, got, newest)
		newest = got.Record.Token
	})
}

func whole(t *testing.T, got lease.Snapshot, newest uint64) {
	token := got.Record.Token
	if token < newest {
		t.Errorf("token %d after %d", token, newest)
	}
	if token == 0 && got.Version == "" {
		return
	}
	if want := patterned(token); want.Holder != got.Record.Holder || strings.Join(texts(want), " ") != strings.Join(texts(got.Record), " ") {
		t.Errorf("a mixture under token %d", token)
	}
}

func texts(r lease.Record) (all []string) {
	for _, id := range r.Verdict.Survivors {
		all = append(all, string(id))
	}
	return all
}
