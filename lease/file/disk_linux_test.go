package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func init() {
	children["on a small disk"] = onASmallDisk
	children["without notifications"] = withoutNotifications
}

// diskReport is what the child met on its disk.
type diskReport struct {
	Full, ReadOnly, Preflight string
	FullRefused, RORefused    bool
	// Kept: the record was whole and unchanged after each failure. Left are the names in the directory at the end.
	Kept bool
	Left []string
	// Freed: once there was room again, a write took place.
	Freed bool
}

// onASmallDisk mounts a disk of 64 KiB for itself alone, fills it, and makes it read-only.
func onASmallDisk() error {
	dir := os.Getenv("CHILD_DIR")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf(noNamespace+": %w", err)
	}
	ctx := context.Background()
	s, err := openStore(filepath.Join(dir, "payments.lease"), nil)
	if err != nil {
		return err
	}
	small, err := s.Write(ctx, record("a", 1), "")
	if err != nil {
		return err
	}
	large := record("b", 2)
	for i := range 2000 {
		large.Verdict.Down = append(large.Verdict.Down, sbr.ID(fmt.Sprintf("payments-7d4b9c6f5d-%05d@%013d", i, i)))
	}
	_, full := s.Write(ctx, large, small)
	afterFull, err := s.Read(ctx)
	if err != nil {
		return err
	}
	freed, err := s.Write(ctx, record("c", 3), small)
	if err != nil {
		return err
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=64k"); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	_, readOnly := s.Write(ctx, record("d", 4), freed)
	afterRO, err := s.Read(ctx)
	if err != nil {
		return err
	}
	report := diskReport{
		Full: text(full), ReadOnly: text(readOnly), Preflight: text(s.Preflight(ctx)),
		FullRefused: errors.Is(full, lease.ErrRefused), RORefused: errors.Is(readOnly, lease.ErrRefused),
		Kept:  afterFull.Version == small && afterRO.Version == freed,
		Freed: afterRO.Record.Token == 3,
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		report.Left = append(report.Left, e.Name())
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// inNamespace runs a child that may mount and set limits for itself alone, without the rights of a superuser, and returns what it prints.
func inNamespace(t *testing.T, role string, env ...string) string {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(append(os.Environ(), childVariable+"="+role), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if err != nil && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) ||
		strings.Contains(stderr.String(), noNamespace)) {
		t.Skipf("this system lets nobody do that in a user namespace: %v %s", err, stderr.String())
	}
	require.NoError(t, err, "%s", stderr.String())
	return string(out)
}

// noNamespace is what a child says that was not allowed to set its stage.
const noNamespace = "cannot set the stage"

// On a real disk that is full, or read-only, a write is refused, says what to do, and leaves the record and the disk as they were.
func TestDisk_FullAndReadOnly(t *testing.T) {
	var got diskReport
	require.NoError(t, json.Unmarshal([]byte(inNamespace(t, "on a small disk", "CHILD_DIR="+t.TempDir())), &got))
	require.Contains(t, got.Full, "no space left on device (the disk or the quota is full: free some space)")
	require.Contains(t, got.ReadOnly, "read-only file system (the file system is read-only: mount it for writing, or set lease.file.path)")
	require.Contains(t, got.Preflight, "the file system is read-only")
	require.True(t, got.FullRefused)
	require.True(t, got.RORefused)
	require.True(t, got.Kept)
	require.True(t, got.Freed)
	require.Equal(t, []string{"payments.lease", "payments.lease.lock"}, got.Left)
}

// withoutNotifications reaches the limit of inotify and watches all the same.
func withoutNotifications() error {
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0); err != nil {
		return fmt.Errorf(noNamespace+": %w", err)
	}
	var log logtest.Log
	s, err := openStore(os.Getenv("CHILD_PATH"), log.Logger())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	defer cancel()
	if _, err := s.Write(ctx, record("a", 1), ""); err != nil {
		return err
	}
	err = lease.Follow(ctx, s, lease.Pace{Retry: time.Millisecond, Poll: time.Millisecond}, log.Logger(), func(got lease.Snapshot) {
		fmt.Println("token", got.Record.Token)
		if got.Record.Token == 2 {
			cancel()
			return
		}
		if _, err := s.Write(ctx, record("a", 2), got.Version); err != nil {
			fmt.Println(err)
		}
	})
	fmt.Print(err, "\n", log.String(), s.Preflight(context.Background()), "\n")
	return nil
}

// At the real limit of inotify a watch reads, and says so once; the preflight names it.
func TestDisk_WithoutNotifications(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(inNamespace(t, "without notifications", "CHILD_PATH="+newPath(t))), "\n")
	require.Len(t, lines, 5, "%q", lines)
	require.Equal(t, []string{"token 1", "token 2", "context canceled"}, lines[:3])
	require.Contains(t, lines[3], "no notifications of changes")
	require.Contains(t, lines[3], "too many open files")
	require.Contains(t, lines[4], "changes are seen up to 1s late")
}
