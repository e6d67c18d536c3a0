//go:build !race

package serf_test

// underRace says that the race detector is on, which makes everything about ten times slower.
const underRace = false
