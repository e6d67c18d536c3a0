// Package filelock is a lock between processes that the kernel gives back when its holder dies, so a killed build or test leaves
// nothing to clean up by hand.
package filelock
