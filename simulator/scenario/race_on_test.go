//go:build race

package scenario

// underRace says that the race detector is on, which makes everything about ten times slower.
const underRace = true
