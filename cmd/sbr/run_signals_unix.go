//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// passedOn are the signals for the program of `sbr run`. What is ignored here (nohup) stays so, there as
// well.
func passedOn() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 64)
	for _, sig := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	return signals, func() { signal.Stop(signals) }
}
