//go:build !unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// passedOn are the signals that this system has.
func passedOn() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals, func() { signal.Stop(signals) }
}
