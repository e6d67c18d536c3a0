//go:build !unix

package program

import (
	"context"
	"os"
)

// Run returns ErrUnsupported.
func Run(context.Context, RunOptions) (status int, err error) { return 0, ErrUnsupported }

// Supervise returns ErrUnsupported.
func Supervise() error { return ErrUnsupported }

// TryLock returns ErrUnsupported.
func TryLock(string) (*os.File, error) { return nil, ErrUnsupported }
