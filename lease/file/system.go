package file

import (
	"github.com/fsnotify/fsnotify"

	"github.com/serf-sbr/serf-sbr/internal/folder"
)

// system is what the store asks of the operating system where it can fail in the middle of a write. Tests put
// faults in between.
type system struct {
	folder.Disk
	locality func(dir string) (locality, error)
	notify   func(dir string) (*fsnotify.Watcher, error)
}

func realSystem() system {
	s := system{Disk: folder.Real(), locality: localityOf, notify: notify}
	s.Rename = replace
	return s
}

// locality is where a file system keeps its files.
type locality struct {
	place place
	// kind is its name, for people.
	kind string
}

type place uint8

const (
	local place = iota
	// remote: another machine may have the same files.
	remote
	// doubtful: it may be either. On one machine its locks hold all the same, as a rule.
	doubtful
)

// identity tells one state of a file from the others of the same name: which file it is, and its change time,
// which every write, rename and link sets to now and no copying tool can set to anything else.
type identity struct {
	device, inode uint64
	changed       int64
	size          int64
}

func notify(dir string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}
