// Package folder makes what was done in a folder last: a name that was given or taken away outlives a power
// loss.
package folder

import (
	"errors"
	"os"
	"runtime"
)

// Sync writes the names in a folder to the disk. It does nothing on Windows, which has no such call: NTFS
// writes its journal by itself, a moment later.
func Sync(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
