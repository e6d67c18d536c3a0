package file

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/serf-sbr/serf-sbr/lease"
)

// section is what a configuration file may say of this implementation.
type section struct {
	Path string `json:"path" yaml:"path"`
}

// Factory returns the implementation for lease.Register. The section's path is the record; if it is a directory, or ends as one,
// the record is <path>/<lease name>.lease, with the name sanitised and an empty one taken for "<system>-sbr". So several leases can
// share a directory; where the path is a file, the lease's name is not used, and
// it serves one use alone (lease.Options.Use). Its stores are *Store: whoever wants a Preflight asserts
// for a method of that name. log is used where the lease.Spec has none; it may be nil.
func Factory(log *slog.Logger) lease.Factory {
	return func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		var set section
		if err := spec.Configure(&set); err != nil {
			return nil, err
		}
		if set.Path == "" {
			return nil, errors.New("file: no path: set lease.file.path to a file, or to a directory for several leases")
		}
		cfg := Config{Path: recordPath(set.Path, spec), Logger: spec.Logger}
		if cfg.Logger == nil {
			cfg.Logger = log
		}
		s, err := New(cfg)
		if err != nil {
			return nil, err
		}
		if s.path != set.Path {
			s.log.Info("the record of the lease", slog.String("lease.file.path", set.Path), slog.String("path", s.path))
		}
		return s, nil
	}
}

func recordPath(path string, spec lease.Spec) string {
	if info, err := os.Stat(path); !isSeparator(path[len(path)-1]) && (err != nil || !info.IsDir()) {
		return path
	}
	name := spec.Name
	if name == "" {
		name = Name(spec.System)
	}
	return filepath.Join(path, SanitizeName(name)+extension)
}
