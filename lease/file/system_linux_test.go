package file

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

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
		unix.NFS_SUPER_MAGIC: remote, unix.CIFS_SUPER_MAGIC: remote, unix.SMB2_SUPER_MAGIC: remote, unix.SMB_SUPER_MAGIC: remote,
		unix.V9FS_MAGIC: remote, unix.CEPH_SUPER_MAGIC: remote, unix.AFS_SUPER_MAGIC: remote,
		-0xACB2BE:             remote, // 0xFF534D42, cifs, as a machine with 32 bits has it
		unix.FUSE_SUPER_MAGIC: doubtful,
		unix.EXT4_SUPER_MAGIC: local, unix.XFS_SUPER_MAGIC: local, unix.BTRFS_SUPER_MAGIC: local, unix.TMPFS_MAGIC: local,
		unix.OVERLAYFS_SUPER_MAGIC: local,
	} {
		require.Equal(t, want, byNumber(number).place, "%#x", number)
	}
}
