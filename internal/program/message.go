//go:build unix

package program

import "time"

// order is a message of the parent to the supervisor; the first order starts the program.
type order struct {
	Start  *start `json:"start,omitempty"`
	Extend *limit `json:"extend,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Stop   string `json:"stop,omitempty"`
	Kill   string `json:"kill,omitempty"`
}

type start struct {
	Options
	// Limit is Options.Until.
	Limit limit
	// Terminal is the process group that has the terminal and hands it to the program. Zero: none.
	Terminal int
}

// limit is a moment by the clock that all processes of a machine share (see uptime). Zero: none.
type limit time.Duration

// limitOf is t as a limit; zero where there is no such clock. The clock is read first: after a pause of this
// process in between the limit is too early, never too late.
func limitOf(t time.Time) limit {
	now, ok := uptime()
	if !ok || t.IsZero() {
		return 0
	}
	return limit(max(now+time.Until(t), 1))
}

// left is the time until l; ok is false if there is no limit.
func (l limit) left() (d time.Duration, ok bool) {
	now, known := uptime()
	if l == 0 || !known {
		return 0, false
	}
	return time.Duration(l) - now, true
}

// report is a message of the supervisor to the parent.
type report struct {
	// Pid answers Start, or else Problem, or Late: ErrTooLate.
	Pid     int    `json:"pid,omitempty"`
	Problem string `json:"problem,omitempty"`
	Late    bool   `json:"late,omitempty"`
	// Stopping says why the program is asked to end, Killing why it is killed.
	Stopping string `json:"stopping,omitempty"`
	Killing  string `json:"killing,omitempty"`
	// Left are the processes that do not end although they are killed.
	Left []int `json:"left,omitempty"`
	// Ended is the last report.
	Ended *Status `json:"ended,omitempty"`
}
