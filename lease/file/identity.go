package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bootID holds what no two running kernels have in common, and all containers of one machine share.
const bootID = "/proc/sys/kernel/random/boot_id"

var errNoBootID = errors.New("file: this system does not tell its machines apart, so the store cannot tell which one it is")

// Identity implements lease.Identified: the running kernel, the folder as that kernel knows it, and the name of the file. So
// containers that share a folder have one store, wherever each has mounted it.
func (s *Store) Identity(ctx context.Context) (string, error) {
	type result struct {
		id  string
		err error
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	r, err := await(ctx, s.reading, func() (r result) {
		r.id, r.err = s.identity()
		return r
	})
	if err == nil {
		err = r.err
	}
	return r.id, err
}

func (s *Store) identity() (string, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoBootID, err)
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return "", fmt.Errorf("file: the folder of the record: %w", err)
	}
	defer func() { _ = dir.Close() }() // it was only looked at
	id, err := identify(dir)
	if err != nil {
		return "", fmt.Errorf("file: the folder of the record: %w", err)
	}
	return fmt.Sprintf("file:%s/%d/%d/%s", strings.TrimSpace(string(boot)), id.device, id.inode, filepath.Base(s.path)), nil
}
