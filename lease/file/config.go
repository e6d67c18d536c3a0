package file

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
)

// Config says where the record is.
type Config struct {
	// Path of the record. Required; a relative one is taken from the working directory at the time of New, so all parties had better
	// use an absolute one. Its directory must exist, on a local disk, and be the same for all parties. Two more kinds of file
	// appear there: Path + ".lock", which stays for ever, and short-lived ".NAME.RANDOM.tmp".
	Path string
	// Logger is told of a file system of which nobody knows whether it is local. Nil: nobody.
	Logger *slog.Logger
}

// Validate returns all problems at once, one per line. It does not look at the disk: Preflight does.
func (c Config) Validate() error {
	var problems []error
	switch base := filepath.Base(c.Path); {
	case c.Path == "":
		problems = append(problems, errors.New("file: the path of the record is empty: set lease.file.path"))
	case isSeparator(c.Path[len(c.Path)-1]), base == ".", base == "..":
		problems = append(problems, fmt.Errorf("file: the path %q names a directory: add the name of the record", c.Path))
	}
	return errors.Join(problems...)
}

func isSeparator(c byte) bool { return c == '/' || c == filepath.Separator }

func (c Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}
