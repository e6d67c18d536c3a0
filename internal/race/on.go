//go:build race

// Package race tells tests whether the race detector is on.
package race

// Enabled says that the race detector is on, which makes everything about ten times slower.
const Enabled = true
