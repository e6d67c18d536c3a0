// Package file keeps a lease in one file, for several processes on one machine. There is no server.
//
//	cfg := file.Config{}
//	cfg.Path = "/var/lib/sbr/payments.lease"
//	store, err := file.New(cfg)
//	...
//	defer store.Close()
//	if err := store.Preflight(ctx); err != nil { ... } // all problems, one per line
//
// The record is JSON that a person can read and correct, the verdict included. A write takes an flock on
// PATH.lock, compares, writes a temporary file beside the record, syncs it, renames it over the record, and
// syncs the directory. A read takes no lock.
//
// # Guarantees
//
//   - Of racing writers, of any number of processes and stores, one wins: the comparison and the replacement
//     are one step under the lock. The kernel frees the lock when its process ends, however it ends.
//   - A reader sees a whole record, the newest one. A writer that is killed at any point leaves the old
//     record or the new one, and at most a temporary file, which later writers remove when it is a minute
//     old.
//   - When Write has returned, the record survives a loss of power, as far as the disk keeps what it has
//     acknowledged.
//   - lease.ErrConflict and lease.ErrRefused mean certainly not written. Every error from the rename on is
//     unknown, unless the kernel says that it did not rename. Nothing is retried.
//   - Read, Write, Preflight and Watch end with their context, also while another process has the lock or the
//     disk does not answer. A write that was refused for that reason does not take place later.
//   - Versions do not repeat: not when the file is deleted and made anew, not when an older copy is put back,
//     not when a hand edits it. They are a hash of the content, which holds a random text chosen by each
//     write, and of the file's identity and change time, which no copying tool can set.
//   - What is not a record (empty, cut off, misspelt by hand, of a newer version) is an error that names the
//     file, what is wrong and the way out. It is never read as free, nor overwritten. A record may have
//     maxSize bytes; a larger one is lease.ErrTooLarge.
//   - A directory that is away is an error, not an absent record. It is never created: it may be a disk that
//     is not mounted.
//   - A watch sees a change by notification, usually within a millisecond, and by looking once a second where
//     notifications are not to be had. A stream ends when the directory is replaced.
//
// # Non-guarantees
//
//   - One machine. On nfs, smb, 9p, ceph and the like every operation is refused with ErrNetworkFileSystem,
//     and no setting changes that: locks and renames would not exclude the other machines, and two holders
//     are worse than none. FUSE may be either; it is used, with a warning in the log. Where the file system
//     cannot be told (Unix other than Linux, macOS and FreeBSD), likewise. A disk that two machines mount as
//     if it were local is not recognised.
//   - All parties need the same directory. Containers that do not mount it from the host have a file each,
//     and each its own holder; mount the directory, not the file, because a mounted file cannot be replaced.
//     Two relative paths are two files if the working directories differ. A symbolic link in place of the
//     file is refused; two hard links part at the first write.
//   - Deleting the lock file (or the directory, while processes use it) lets a second writer in. A write
//     looks for that once more right before it replaces the file and begins again; only a change in the
//     microseconds after that look is lost. The same holds for an edit by hand. Do not delete the lock file
//     while any party runs, and leave it where it is afterwards.
//   - A process that is stopped, not killed, in the few milliseconds of a write keeps the lock, and no other
//     process writes until it goes on or is killed. The others read, and get an error that says why they
//     cannot write. Its lease expires as any other.
//   - An older copy that is put back (a backup) is taken for what it says. Package lease keeps the newest
//     token and verdict that the running parties have seen; parties that start later know only the copy.
//   - A mount point whose disk is not mounted looks like an absent record, if its directory exists.
//   - The lock is not fair, and it is advisory: it does not keep out programs that do not use this package.
//   - A change of mode or owner, or a new link, makes a new version without a new record: one conflict
//     without a cause.
//   - Windows: a directory cannot be synced, so the last write may be lost with the power; an open file
//     cannot be replaced, so a write waits for readers, up to a second. Tested is Linux; the others are only
//     compiled.
//
// # Assumptions
//
//   - A local file system: flock, an atomic rename, and a change time that moves with each change (ext4, xfs,
//     btrfs, zfs, tmpfs, apfs, ntfs). A record on tmpfs is gone after a restart of the machine.
//   - All parties run as one user, which may write in the directory. The record is made with mode 0644, less
//     the umask, so that others can look at it; a mode that an operator gives it is kept. The lock file has
//     0600: a process that can open it can stop all writers.
//   - All users that may write in the directory are trusted: they may write anything.
package file
