//go:build unix

package file

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func init() { children["tries"] = tries }

// nobody is a user without rights of its own.
const nobody = 65534

// tried is what a child with few rights met.
type tried struct {
	Read, Write, Preflight string
	// Refused and Conflict say what the error of the write wraps.
	Refused, Conflict bool
	Token             uint64
}

// tries reads, writes and checks as a user without special rights. A superuser would be stopped by nothing.
func tries() error {
	if os.Getuid() == 0 {
		if err := syscall.Setgid(nobody); err != nil {
			return err
		}
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	s, err := openStore(os.Getenv("CHILD_PATH"), nil)
	if err != nil {
		return err
	}
	ctx := context.Background()
	got, readErr := s.Read(ctx)
	_, writeErr := s.Write(ctx, record("nobody", 2), got.Version)
	preErr := s.Preflight(ctx)
	return json.NewEncoder(os.Stdout).Encode(tried{
		Read: text(readErr), Write: text(writeErr), Preflight: text(preErr), Token: got.Record.Token,
		Refused:  strings.Contains(text(writeErr), lease.ErrRefused.Error()),
		Conflict: strings.Contains(text(writeErr), lease.ErrConflict.Error()),
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A user without the rights is told which directory and what to do. What it may read it reads.
func TestRights(t *testing.T) {
	const byOneUser = "all parties must run as one user, who owns the files and may write in "
	for name, c := range map[string]struct {
		lock, readable bool
		directory      os.FileMode
		read, write    string
	}{
		"may not enter the directory":         {directory: 0o700, read: byOneUser, write: byOneUser},
		"may not write in it":                 {directory: 0o755, readable: true, write: byOneUser},
		"the lock file is of another user":    {directory: 0o777, readable: true, lock: true, write: byOneUser},
		"the record is of another user's":     {directory: 0o777, lock: true, read: byOneUser, write: byOneUser},
		"all may write, in a common folder":   {directory: 0o777, readable: true},
		"a common folder with the sticky bit": {directory: 0o777 | os.ModeSticky, readable: true, write: byOneUser},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getuid() != 0 && c.directory.Perm() == 0o777 {
				t.Skip("files of another user take a superuser to make")
			}
			dir := t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) // else nobody could even get there
			t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
			path := filepath.Join(dir, "payments.lease")
			mode := os.FileMode(0o600)
			if c.readable {
				mode = 0o644
			}
			require.NoError(t, os.WriteFile(path, mustEncode(t, record("root", 1)), mode))
			if c.lock {
				mustWriteFile(t, path+".lock", "")
			}
			own := c.directory
			if os.Getuid() != 0 { // there is only one user: the owner
				own = map[os.FileMode]os.FileMode{0o700: 0, 0o755: 0o500}[c.directory]
			}
			require.NoError(t, os.Chmod(dir, own))

			child := start(t, "tries", "CHILD_PATH="+path)
			line, ok := child.line()
			require.True(t, ok, "%s", child.stderr.String())
			child.wait(false)
			var got tried
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			for _, pair := range [][2]string{{got.Read, c.read}, {got.Write, c.write}, {got.Preflight, c.write}} {
				require.Equal(t, pair[1] == "", pair[0] == "", "%+v", got)
				require.Contains(t, pair[0], pair[1])
			}
			require.Equal(t, c.write != "", got.Refused, "%+v", got)
			require.False(t, got.Conflict)
			if c.read == "" {
				require.EqualValues(t, 1, got.Token)
			}
			require.Contains(t, fmt.Sprint(got.Read, got.Write), map[bool]string{true: dir}[c.write != ""])
		})
	}
}

// Neither a pipe in the place of the record nor one in the place of the lock holds anybody up.
func TestErrors_Pipes(t *testing.T) {
	s := newStore(t, newPath(t))
	require.NoError(t, syscall.Mkfifo(s.path, 0o600))
	_, err := s.Read(t.Context())
	refusedOneLine(t, s, err, "a device, pipe or socket")
	_, err = s.Write(t.Context(), record("a", 1), "")
	refusedOneLine(t, s, err, "a device, pipe or socket")
	require.NoError(t, os.Remove(s.path))
	require.NoError(t, os.Remove(s.lockPath()))

	require.NoError(t, syscall.Mkfifo(s.lockPath(), 0o600))
	_, err = s.Write(t.Context(), record("a", 1), "")
	refusedOneLine(t, s, err, "not a regular file")
}
