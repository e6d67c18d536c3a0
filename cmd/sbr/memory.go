package main

import (
	"os"
	"runtime/debug"
)

// relaxCollector lets the collector run less often, for verbs that play many small runs on all cores: with Go's default it takes a fifth of
// their time and most of what a second core would give (BenchmarkCores). What that may cost in memory is bounded. GOGC and GOMEMLIMIT
// in the environment have the last word.
func relaxCollector() {
	const percent, limit = 800, 1 << 30
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
