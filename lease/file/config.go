package file

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Config says where the record is.
type Config struct {
	// Path of the record. Required; a relative one is taken from the working directory at the time of New, so
	// all parties had better use an absolute one. Its directory must exist, on a local disk, and be the same
	// for all parties. Two more kinds of file appear there: Path + ".lock", which stays for ever, and
	// short-lived ".NAME.RANDOM.tmp".
	Path string
	// Logger gets a warning about a file system that may not be local. Nil: no log.
	Logger *slog.Logger
}

// Validate returns all problems at once, one per line. It does not look at the disk: Preflight does.
func (c Config) Validate() error {
	var problems []error
	switch base := filepath.Base(c.Path); {
	case c.Path == "":
		problems = append(problems, errors.New("file: the path of the record is empty: set lease.file.path"))
	case isSeparator(c.Path[len(c.Path)-1]), base == ".", base == "..":
		problems = append(problems, fmt.Errorf("file: the path %q names a directory: add the name of the record",
			c.Path))
	}
	return errors.Join(problems...)
}

func isSeparator(c byte) bool { return c == '/' || c == filepath.Separator }

func (c Config) logger() *slog.Logger { return cmp.Or(c.Logger, slog.New(slog.DiscardHandler)) }

// section is what a configuration file may say of this implementation.
type section struct {
	Path string `json:"path" yaml:"path"`
}

// Factory returns the implementation for lease.Register. The section's path is the record; if it is a
// directory, or ends as one, the record is <path>/<lease name>.lease, with the name sanitised. So several
// leases can share a directory; where the path is a file, the lease's name is not used, and it serves one use
// alone (lease.Options.Use). Its stores are *Store. log is used where the lease.Spec has none; it may be nil.
func Factory(log *slog.Logger) lease.Factory {
	return func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		var set section
		if err := spec.Configure(&set); err != nil {
			return nil, err
		}
		if set.Path == "" {
			return nil,
				errors.New("file: no path: set lease.file.path to a file, or to a directory for several leases")
		}
		cfg := Config{Path: recordPath(set.Path, spec.Name), Logger: cmp.Or(spec.Logger, log)}
		s, err := New(cfg)
		if err != nil {
			return nil, err
		}
		if s.path != set.Path {
			s.log.Info("the record of the lease", slog.String("lease.file.path", set.Path),
				slog.String("path", s.path))
		}
		return s, nil
	}
}

func recordPath(path, name string) string {
	if info, err := os.Stat(path); !isSeparator(path[len(path)-1]) && (err != nil || !info.IsDir()) {
		return path
	}
	return filepath.Join(path, sanitizeName(name)+extension)
}

const (
	extension = ".lease"
	// maxName leaves room for the extension, the lock file's and the temporary file's in the 255 bytes that
	// file systems allow.
	maxName  = 100
	nameHash = 13 // characters, 65 bits
)

var nameEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// sanitizeName turns any text into the name of a file, the same on every file system: lower-case letters a-z,
// digits, and inner hyphens, underscores and dots, at most 100 of them. Whatever else there was becomes a
// hyphen. A name that had to be changed ends in a hash of the original, so that two names stay two: "Orders"
// and "orders" are not one lease.
func sanitizeName(name string) string {
	clean := strings.Trim(strings.Map(nameRune, strings.ToLower(name)), "-_.")
	if clean == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := nameEncoding.EncodeToString(sum[:])[:nameHash]
	clean = strings.Trim(clean[:min(len(clean), maxName-nameHash-1)], "-_.")
	if clean == "" {
		return hash
	}
	return clean + "-" + hash
}

func nameRune(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return r
	default:
		return '-'
	}
}

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "file"

func init() { lease.Register(Key, Factory(nil)) }
