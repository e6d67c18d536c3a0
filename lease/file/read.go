package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
)

// content is what stands at the path at one moment. The zero content: nothing.
type content struct {
	text []byte
	id   identity
	mode os.FileMode
	// exists: there is a file, whatever is in it.
	exists bool
}

// version is made of the bytes, the file they are in and its change time. The bytes hold a random text that
// each write chooses, so that no write repeats a version; a hand's edit changes the bytes; and a copy of an
// older state that was put back, bytes and all, is another file or was changed at another time. So no state
// is taken for an earlier one that looked the same. Other changes of the file (chmod, a link) make a new
// version as well: a conflict without a cause, which does no harm.
func (c content) version() lease.Version {
	if !c.exists {
		return ""
	}
	sum := sha256.New()
	// a hash takes everything
	_ = binary.Write(sum, binary.BigEndian, [2]uint64{c.id.inode, uint64(c.id.changed)})
	sum.Write(c.text)
	return lease.Version(hex.EncodeToString(sum.Sum(nil)[:16]))
}

func (c content) snapshot() (lease.Snapshot, error) {
	if !c.exists {
		return lease.Snapshot{}, nil
	}
	r, err := decode(c.text)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return lease.Snapshot{Record: r, Version: c.version()}, nil
}

// load returns what stands at the path. It needs no lock: the file is replaced, never changed. Only a hand
// changes it in place; then it is read again until it is at rest.
func (s *Store) load() (content, error) {
	for range 100 {
		c, stable, err := s.loadOnce()
		if err != nil || stable {
			return c, err
		}
	}
	return content{}, errUnstableRead
}

func (s *Store) loadOnce() (c content, stable bool, err error) {
	f, err := openFile(s.path)
	if f != nil {
		defer func() { _ = f.Close() }()
	}
	// A directory that is not there (not mounted, most likely) is no lease that is free.
	if err := s.checkDir(); err != nil {
		return content{}, false, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, true, nil
	}
	if err != nil {
		return content{}, false, err
	}
	info, err := f.Stat()
	if err != nil {
		return content{}, false, err
	}
	if !info.Mode().IsRegular() {
		return content{}, false, fmt.Errorf("%w but %s", errNotRegular, kindOf(info.Mode()))
	}
	c = content{exists: true, mode: info.Mode().Perm()}
	if c.id, err = identify(f); err != nil {
		return content{}, false, err
	}
	if c.text, err = io.ReadAll(io.LimitReader(f, maxSize+1)); err != nil {
		return content{}, false, err
	}
	after, err := identify(f)
	return c, after == c.id, err
}

func kindOf(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	default:
		return "a device, pipe or socket"
	}
}

// checkDir refuses directories that are not there, are none, or are not of this machine alone.
func (s *Store) checkDir() error {
	l, err := s.system.locality(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", s.dir, errNoDirectory)
	case err != nil:
		return err
	case l.place == remote:
		return fmt.Errorf("%w: %s is on %s", ErrNetworkFileSystem, s.dir, l.kind)
	case l.place == doubtful:
		s.doubt.Do(func() {
			s.log.Warn("lease file: nobody knows whether this file system is local; if other machines share it, the lease does not hold",
				slog.String("path", s.path), slog.String("file-system", l.kind))
		})
	}
	return nil
}

// maxSize is the largest record in bytes, written or read: verdicts that name about twenty thousand members.
const maxSize = 1 << 20

// encode returns the content of the file, which people read, too.
func encode(r lease.Record) ([]byte, error) {
	line, err := lease.MarshalRecord(r)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err = json.Indent(&text, line, "", "  "); err == nil && text.Len() > maxSize {
		err = fmt.Errorf("%w: %d bytes, at most %d: list fewer members in the verdict", lease.ErrTooLarge,
			text.Len(), maxSize)
	}
	return text.Bytes(), err
}

// decode reads the content of an existing file, of any writer. Every error wraps ErrBadRecord.
func decode(text []byte) (r lease.Record, err error) {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		err = errors.New("the file is empty")
	case len(text) > maxSize:
		err = fmt.Errorf("more than %d bytes", maxSize)
	default:
		r, err = lease.UnmarshalRecord(text)
	}
	if err != nil {
		return lease.Record{}, fmt.Errorf("%w: %w", ErrBadRecord, brief(err))
	}
	return r, nil
}

// brief keeps an error that quotes the file from being as long as the file.
func brief(err error) error {
	const longest = 300
	if text := err.Error(); len(text) > longest {
		return errors.New(strings.ToValidUTF8(text[:longest], "") + "…")
	}
	return err
}
