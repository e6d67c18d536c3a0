package file

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

// The real limits of a system: a disk that is full and then read-only, and no notifications left. Each child
// has the disk, or the limit, for itself in a user namespace, and prints what it meets, line by line.
func TestLimits(t *testing.T) {
	const readOnly = "the file system is read-only: mount it for writing"
	for role, want := range map[string][]string{
		"on a small disk": {
			"no space left on device (the disk or the quota is full: free some space)", "token 1 <nil> 2 files []",
			"<nil>", readOnly, "token 3 <nil> 2 files []", readOnly,
		},
		"without notifications": {
			"token 1", "token 2", "context canceled", "too many open files (raise fs.inotify.max_user_instances", "changes are seen up to 1s late",
		},
	} {
		t.Run(role, func(t *testing.T) {
			got := strings.Split(strings.TrimSpace(inNamespace(t, role, t.TempDir())), "\n")
			require.Len(t, got, len(want), "%q", got)
			for i := range want {
				require.Contains(t, got[i], want[i])
			}
		})
	}
}

// inNamespace runs a child that may mount and set limits for itself alone, and returns what it prints. It
// needs no superuser, but a system on which users may make namespaces.
func inNamespace(t *testing.T, role, dir string) string {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childVariable+"="+role, "CHILD_DIR="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	if err != nil && (cmd.ProcessState == nil || strings.Contains(stderr.String(), noNamespace)) {
		t.Skipf("needs user namespaces: %v %s", err, stderr.String())
	}
	require.NoError(t, err, "%s", stderr.String())
	return string(out)
}

// noNamespace is what a child says that may not set limits for itself.
const noNamespace = "not allowed in this namespace"

// onASmallDisk fills a disk of 64 KiB, frees it, and makes it read-only.
func onASmallDisk() error {
	dir, ctx := os.Getenv("CHILD_DIR"), context.Background()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf(noNamespace+": %w", err)
	}
	s, err := openStore(filepath.Join(dir, "payments.lease"), nil)
	if err != nil {
		return err
	}
	write := func(r lease.Record) error {
		got, err := s.Read(ctx)
		if err == nil {
			_, err = s.Write(ctx, r, got.Version)
		}
		return err
	}
	state := func() {
		got, err := s.Read(ctx)
		files, _ := filepath.Glob(dir + "/*")
		hidden, _ := filepath.Glob(dir + "/.*")
		fmt.Println("token", got.Record.Token, err, len(files), "files", hidden)
	}
	if err := write(record("a", 1)); err != nil {
		return err
	}
	large := record("b", 2)
	for i := range 5000 {
		large.Verdict.Down = append(large.Verdict.Down, sbr.ID(fmt.Sprintf("payments-7d4b9c6f5d-%05d@%013d", i, i)))
	}
	fmt.Println(write(large))
	state()
	fmt.Println(write(record("c", 3)))
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "size=64k"); err != nil {
		return fmt.Errorf(noNamespace+": %w", err)
	}
	fmt.Println(write(record("d", 4)))
	state()
	fmt.Println(s.Preflight(ctx))
	return nil
}

// withoutNotifications watches although the limit of inotify is reached.
func withoutNotifications() error {
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0); err != nil {
		return fmt.Errorf(noNamespace+": %w", err)
	}
	var log logtest.Log
	s, err := openStore(filepath.Join(os.Getenv("CHILD_DIR"), "payments.lease"), log.Logger())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	defer cancel()
	if _, err := s.Write(ctx, record("a", 1), ""); err != nil {
		return err
	}
	err = lease.Follow(ctx, s, quick, log.Logger(), func(got lease.Snapshot) {
		fmt.Println("token", got.Record.Token)
		if got.Record.Token == 2 {
			cancel()
		} else if _, err := s.Write(ctx, record("a", 2), got.Version); err != nil {
			fmt.Println(err)
		}
	})
	fmt.Print(err, "\n", log.String(), s.Preflight(context.Background()), "\n")
	return nil
}

func TestLocality_OfThisMachine(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/proc"} {
		l, err := localityOf(dir)
		require.NoError(t, err)
		require.Equal(t, local, l.place, "%s is on %s", dir, l.kind)
	}
	_, err := localityOf("/proc/none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLocality_ByNumber(t *testing.T) {
	for number, want := range map[int64]place{
		unix.NFS_SUPER_MAGIC: remote, unix.CIFS_SUPER_MAGIC: remote, unix.SMB2_SUPER_MAGIC: remote,
		unix.SMB_SUPER_MAGIC: remote,
		unix.V9FS_MAGIC:      remote, unix.CEPH_SUPER_MAGIC: remote, unix.AFS_SUPER_MAGIC: remote,
		-0xACB2BE:             remote, // 0xFF534D42, cifs, as a machine with 32 bits has it
		unix.FUSE_SUPER_MAGIC: doubtful,
		unix.EXT4_SUPER_MAGIC: local, unix.XFS_SUPER_MAGIC: local, unix.BTRFS_SUPER_MAGIC: local,
		unix.TMPFS_MAGIC:           local,
		unix.OVERLAYFS_SUPER_MAGIC: local,
	} {
		require.Equal(t, want, byNumber(number).place, "%#x", number)
	}
}
