package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Kind is what an entry says about its run.
type Kind string

// The kinds: a run begins, works, and has been told to stop and does nothing after this.
const (
	Start Kind = "start"
	Work  Kind = "work"
	Stop  Kind = "stop"
)

// Entry is what a writer sends.
type Entry struct {
	// Resource is what is written to; each has a fence of its own. Required.
	Resource string `json:"resource"`
	// Member is where the run is, Run which of its runs. Run is required.
	Member string `json:"member"`
	Run    string `json:"run"`
	// Seq counts the attempts of the run, from 1.
	Seq uint64 `json:"seq"`
	// Kind is required.
	Kind Kind `json:"kind"`
}

// Validate reports every problem at once, one line each.
func (e Entry) Validate() error {
	var problems []error
	if e.Resource == "" {
		problems = append(problems, errors.New("ledger: the resource is empty"))
	}
	if e.Run == "" {
		problems = append(problems, errors.New("ledger: the run is empty"))
	}
	switch e.Kind {
	case Start, Work, Stop:
	default:
		problems = append(problems, fmt.Errorf("ledger: the kind is %q: it must be start, work or stop", e.Kind))
	}
	return errors.Join(problems...)
}

// Line is one line of the file: an attempt, and what became of it.
type Line struct {
	// At is when it was decided, since the server began. Strictly growing.
	At time.Duration `json:"at"`
	// Token is the token of the request.
	Token uint64 `json:"token"`
	// Accepted is false when the fence refused it.
	Accepted bool `json:"accepted"`
	Entry
}

// Read reads lines as the server writes them. It returns those before the first that is none, cut off or not
// in order of time, and the error names its number.
func Read(r io.Reader) ([]Line, error) {
	var lines []Line
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return lines, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		var l Line
		if err == nil {
			err = json.Unmarshal(text, &l)
		}
		if err == nil {
			err = l.Validate()
		}
		if err == nil && len(lines) > 0 && l.At <= lines[len(lines)-1].At {
			err = fmt.Errorf("its time is %v, and that of the line before %v", l.At, lines[len(lines)-1].At)
		}
		if err != nil {
			return lines, fmt.Errorf("ledger: line %d: %w", len(lines)+1, err)
		}
		lines = append(lines, l)
	}
}
