package file

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tempSuffix = ".tmp"
	// randomLength is that of rand.Text.
	randomLength = 26
	// leftoverAge is how old a temporary file must be to count as left behind. A live one is as old as two fsyncs.
	leftoverAge = time.Minute
)

// tidy removes what killed writers left behind: temporary files of this very record, and only old ones. Called under the lock, at
// most once a minute. What goes wrong is left to the next time.
func (s *Store) tidy() {
	now := time.Now()
	if now.Sub(s.tidied) < leftoverAge {
		return
	}
	s.tidied = now
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !s.isTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
}

// isTemp reports whether name is one that tempName returns.
func (s *Store) isTemp(name string) bool {
	random, ok := strings.CutPrefix(name, "."+filepath.Base(s.path)+".")
	if !ok {
		return false
	}
	random, ok = strings.CutSuffix(random, tempSuffix)
	return ok && len(random) == randomLength && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
