package file

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// fileSystems by their number. Whatever is not here is taken for local: ext4, xfs, btrfs, zfs, tmpfs, overlay
// and many more.
var fileSystems = map[uint32]locality{
	unix.NFS_SUPER_MAGIC:   {remote, "nfs"},
	unix.SMB_SUPER_MAGIC:   {remote, "smb"},
	unix.CIFS_SUPER_MAGIC:  {remote, "cifs"},
	unix.SMB2_SUPER_MAGIC:  {remote, "smb2"},
	unix.V9FS_MAGIC:        {remote, "9p"},
	unix.CEPH_SUPER_MAGIC:  {remote, "ceph"},
	unix.AFS_SUPER_MAGIC:   {remote, "afs"},
	unix.AFS_FS_MAGIC:      {remote, "afs"},
	unix.CODA_SUPER_MAGIC:  {remote, "coda"},
	unix.OCFS2_SUPER_MAGIC: {remote, "ocfs2"},
	0x01161970:             {remote, "gfs2"},
	0x0BD00BD0:             {remote, "lustre"},
	0x47504653:             {remote, "gpfs"},
	0x564c:                 {remote, "ncp"},
	0x20030528:             {remote, "orangefs"},
	0x786f4256:             {remote, "vboxsf"},
	0xbacbacbc:             {remote, "vmhgfs"},
	0x19830326:             {remote, "beegfs"},
	0xaad7aaea:             {remote, "panfs"},
	0xbeefdead:             {remote, "stornext"},
	0xa501fcf5:             {remote, "vxfs"},
	0x61636673:             {remote, "acfs"},
	unix.FUSE_SUPER_MAGIC:  {doubtful, "fuse"},
}

func localityOf(dir string) (locality, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return locality{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
		break
	}
	return byNumber(int64(st.Type)), nil //nolint:unconvert // its size differs from machine to machine
}

// byNumber looks at the lower 32 bits: that is all they have, whatever the sign.
func byNumber(number int64) locality {
	if l, known := fileSystems[uint32(number)]; known {
		return l
	}
	return locality{local, fmt.Sprintf("%#x", uint32(number))}
}
