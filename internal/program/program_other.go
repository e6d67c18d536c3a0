//go:build !unix

package program

import (
	"syscall"
	"time"
)

// Program is a program that was started. There is none on this system.
type Program struct{}

// Start returns ErrUnsupported.
func Start(Options) (*Program, error) { return nil, ErrUnsupported }

// Ready is a keeper that waits for its program. There is none on this system.
type Ready struct{}

// Prepare returns ErrUnsupported.
func Prepare([]string) (*Ready, error) { return nil, ErrUnsupported }

// Start returns ErrUnsupported.
func (*Ready) Start(Options) (*Program, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Ready) Close() {}

// Keep returns ErrUnsupported.
func Keep() error { return ErrUnsupported }

// Pid is that of no process.
func (*Program) Pid() int { return 0 }

// Extend does nothing.
func (*Program) Extend(time.Time) {}

// Signal does nothing.
func (*Program) Signal(syscall.Signal) {}

// Stop does nothing.
func (*Program) Stop(string, syscall.Signal) {}

// Kill does nothing.
func (*Program) Kill(string) {}

// Ended is never closed.
func (*Program) Ended() <-chan struct{} { return nil }

// Status is that of no program.
func (*Program) Status() Status { return Status{} }
