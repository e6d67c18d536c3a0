//go:build unix

package fence_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/lease/file"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The paused writer as it happens: two processes, one lease in a file, one database. The first has looked at
// its lease and is about to write when SIGSTOP stops it. The second takes over and writes. Then the first
// goes on. Without the fence its write wins: that shows that the fence is what stops it.
func TestPausedWriter(t *testing.T) {
	for name, c := range map[string]struct {
		fenced bool
		says   string
		row    string
	}{
		"with the fence its write is refused":             {true, "stale: 1 < 2", "written by b under token 2"},
		"without the fence it overwrites its successor's": {false, "written", "written by a under token 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db, err := openDB(filepath.Join(dir, "orders.db"))
			require.NoError(t, err)
			defer db.Close()
			_, err = db.Exec(fence.Table +
				"; CREATE TABLE orders (id INTEGER, state TEXT); INSERT INTO orders VALUES (1, 'new')")
			require.NoError(t, err)

			a := startWriter(t, dir, "a", c.fenced)
			require.Equal(t, "holds the lease: token 1", a.line())
			a.signal(syscall.SIGSTOP)

			b := startWriter(t, dir, "b", c.fenced)
			require.Equal(t, "holds the lease: token 2", b.line(), "a's lease has run out")
			b.write()
			require.Equal(t, "written", b.line())

			a.write() // it reads this when it goes on
			a.signal(syscall.SIGCONT)
			require.Equal(t, c.says, a.line())

			var state string
			require.NoError(t, db.QueryRow("SELECT state FROM orders WHERE id = 1").Scan(&state))
			require.Equal(t, c.row, state)
		})
	}
}

// writer is a process of its own.
type writer struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

const writerVariable = "FENCE_TEST_WRITER"

func startWriter(t *testing.T, dir, name string, fenced bool) *writer {
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w := &writer{t: t, cmd: exec.CommandContext(ctx, exe)}
	w.cmd.Env = append(os.Environ(), writerVariable+"="+name, "DIR="+dir, fmt.Sprintf("FENCED=%t", fenced))
	w.cmd.Stderr = os.Stderr
	w.in, err = w.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(t, err)
	w.lines = bufio.NewScanner(out)
	require.NoError(t, w.cmd.Start())
	t.Cleanup(func() {
		cancel() // kills it, stopped or not
		_ = w.cmd.Wait()
	})
	return w
}

func (w *writer) line() string {
	w.lines.Scan()
	return w.lines.Text()
}

func (w *writer) write() {
	_, err := fmt.Fprintln(w.in, "write")
	require.NoError(w.t, err)
}

func (w *writer) signal(s syscall.Signal) { require.NoError(w.t, w.cmd.Process.Signal(s)) }

func TestMain(m *testing.M) {
	name := os.Getenv(writerVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := runWriter(name, os.Getenv("DIR"), os.Getenv("FENCED") == "true"); err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		os.Exit(1)
	}
}

// runWriter is a program that looks at its lease before it writes, as a careful one does.
func runWriter(name, dir string, fenced bool) error {
	db, err := openDB(filepath.Join(dir, "orders.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	cfg := file.Config{}
	cfg.Path = filepath.Join(dir, "orders.lease")
	store, err := file.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	times := lease.Settings{HeartbeatTimeout: 2 * time.Second, HeartbeatInterval: 400 * time.Millisecond,
		OperationTimeout: 500 * time.Millisecond}
	l, err := lease.New(store, name, times, lease.Options{})
	if err != nil {
		return err
	}
	defer l.Close()

	out := linear.AnswerOf(l.AcquireWait(context.Background(), lease.Proposal{}))
	if out.Kind != sbr.Granted {
		return out.Err
	}
	token := out.Record.Token
	fmt.Printf("holds the lease: token %d\n", token)
	in := bufio.NewScanner(os.Stdin)
	in.Scan() // the moment between the look and the write
	err = change(db, fenced, token, fmt.Sprintf("written by %s under token %d", name, token))
	if stale, ok := errors.AsType[*fence.StaleError](err); ok {
		fmt.Printf("stale: %d < %d\n", stale.Token, stale.Newest)
	} else if err == nil {
		fmt.Println("written")
	}
	in.Scan() // until the test is over
	return err
}

// write is one piece of work: the fence and the change are one transaction.
func write(ctx context.Context, db *sql.DB, token uint64, text string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fence.Admit(ctx, tx, fence.SQLite, "orders", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = ? WHERE id = 1", text); err != nil {
		return err
	}
	return tx.Commit()
}

func change(db *sql.DB, fenced bool, token uint64, state string) error {
	if fenced {
		return write(context.Background(), db, token, state)
	}
	_, err := db.Exec("UPDATE orders SET state = ? WHERE id = 1", state)
	return err
}
