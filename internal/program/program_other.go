//go:build !unix

package program

import "context"

// Run returns ErrUnsupported.
func Run(context.Context, RunOptions) (status int, err error) { return 0, ErrUnsupported }

// Supervise returns ErrUnsupported.
func Supervise() error { return ErrUnsupported }
