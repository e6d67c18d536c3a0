//go:build linux

package main

import (
	"os"
	"strconv"
	"strings"
)

// processors is what the kernel has counted since the machine's start, in clock ticks.
type processors struct{ idle, total float64 }

// readProcessors reads the first line of /proc/stat; what cannot be read counts as nothing.
func readProcessors() processors {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processors{}
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	return parseProcessors(line)
}

// parseProcessors reads user, nice, system, idle, iowait, irq, softirq, steal; guests are counted among the
// users.
func parseProcessors(line string) (p processors) {
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 {
			continue
		}
		p.total += ticks
		if i == 4 || i == 5 {
			p.idle += ticks
		}
	}
	return p
}

// until is the share that was in use between two readings, from 0 to 1.
func (p processors) until(later processors) float64 {
	total := later.total - p.total
	if total <= 0 {
		return 0
	}
	return 1 - (later.idle-p.idle)/total
}
