package reachability

import (
	"errors"
	"fmt"
	"time"
)

// MaxProbes bounds how many members are probed in one round.
const MaxProbes = 128

// Settings are the settings of direct probes. Start from DefaultSettings.
type Settings struct {
	// Interval is the time between two rounds of probes.
	Interval time.Duration
	// Timeout is how long a probe may take. It must be shorter than Interval.
	Timeout time.Duration
	// Tries is how many probes in a row must fail before a subject counts as unreachable by this observer. At least 1.
	Tries int
	// Neighbours is how many members each one probes in peace, and how many observers must agree. Zero switches probes off:
	// then only Serf's word counts.
	Neighbours int
}

// DefaultSettings notices a cut in 3 to 5 seconds at the cost of five pings a second for each member.
func DefaultSettings() Settings {
	return Settings{Interval: time.Second, Timeout: 500 * time.Millisecond, Tries: 3, Neighbours: 5}
}

// ReportTTL is how long a report of another observer counts without being repeated.
func (s Settings) ReportTTL() time.Duration { return 10 * s.Interval }

// Validate reports every problem at once.
func (s Settings) Validate() error {
	var errs []error
	if s.Neighbours < 0 {
		errs = append(errs, fmt.Errorf("probe.neighbours is %d: it must not be negative (0 switches probes off)", s.Neighbours))
	}
	if s.Neighbours > 0 && s.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("probe.timeout is %v: it must be more than 0s", s.Timeout))
	}
	if s.Neighbours > 0 && s.Interval <= s.Timeout {
		errs = append(errs, fmt.Errorf("probe.interval is %v: it must be longer than probe.timeout (%v)", s.Interval, s.Timeout))
	}
	if s.Neighbours > 0 && s.Tries < 1 {
		errs = append(errs, fmt.Errorf("probe.tries is %d: it must be at least 1", s.Tries))
	}
	return errors.Join(errs...)
}
