package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// resolve returns what the names of sbr.yaml stand for: commands with the paths of their files, and the
// signal.
func resolve(h *config.Hooks) (commands map[event][]string, sig os.Signal, err error) {
	var problems []error
	commands = make(map[event][]string)
	for _, c := range []struct {
		event
		command []string
	}{{suspend, h.OnSuspend}, {resume, h.OnResume}, {down, h.OnDown}} {
		if len(c.command) == 0 {
			continue
		}
		path, err := executable(c.command[0])
		if err != nil {
			problems = append(problems, fmt.Errorf("hooks.on-%s: %w", c.event, err))
		}
		commands[c.event] = append([]string{path}, c.command[1:]...)
	}
	if h.PIDFile != "" {
		if sig, err = signalNamed(h.Signal); err != nil {
			problems = append(problems, fmt.Errorf("hooks.signal: %w", err))
		}
	}
	return commands, sig, errors.Join(problems...)
}

// executable finds the file of a command, so that a later change of the environment does not.
func executable(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%q is not in $PATH: give the whole path of an executable file", name)
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%q does not exist", name)
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("%q cannot be executed: it must be a file, with the right to execute it (chmod +x)",
			name)
	case err != nil:
		if e := new(exec.Error); errors.As(err, &e) {
			err = e.Err // without the name, a second time
		}
		return "", fmt.Errorf("%q cannot be executed: %w", name, err)
	}
	return path, nil
}

// event is what a command is run for. Its text is SBR_EVENT, and with "on-" before it the key of the command.
type event string

const (
	suspend event = "suspend"
	resume  event = "resume"
	down    event = "down"
)

// Facts are the input of a command. Every field may be empty. Texts may come from other members: in the
// environment control characters become blanks, and what is longer than 8 KiB is cut; in the JSON object they
// are whole.
type Facts struct {
	// System names the cluster, Member this member, Incarnation this start of it.
	System      string `json:"system"`
	Member      string `json:"member"`
	Incarnation string `json:"incarnation"`
	// Incident is the id of the partition that it belongs to, as in the log and in the trace.
	Incident string `json:"incident"`
	// Trace is the id of the trace that it is part of; empty before the verdict.
	Trace string `json:"trace"`
	// State is that of downing.Status.
	State string `json:"state"`
	// Reason is one sentence.
	Reason string `json:"reason"`
	// At is when it happened. Zero: now.
	At time.Time `json:"at"`
	// Token is that of the newest verdict. Zero: there is none.
	Token uint64 `json:"token"`
	// Unreachable are names; Survivors and Down are those of the newest verdict. Nil is an empty list.
	Unreachable []string `json:"unreachable"`
	Survivors   []string `json:"survivors"`
	Down        []string `json:"down"`
}

// log adds to each line whose it is.
func (f *Facts) log(to *slog.Logger) *slog.Logger {
	to = to.With("member", f.Member, "incarnation", f.Incarnation, "incident", f.Incident)
	if f.Trace != "" {
		to = to.With("trace", f.Trace)
	}
	return to
}

func (f Facts) complete() Facts {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	f.At = f.At.UTC()
	for _, list := range []*[]string{&f.Unreachable, &f.Survivors, &f.Down} {
		if *list == nil {
			*list = []string{}
		}
	}
	return f
}

// input is the JSON object, on one line.
func (f Facts) input(e event) ([]byte, error) {
	data, err := json.Marshal(struct {
		Event event `json:"event"`
		Facts
	}{e, f})
	return append(data, '\n'), err
}

// environment is that of this process, with those facts of an input that are no lists.
func environment(input []byte) []string {
	var facts map[string]any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	_ = d.Decode(&facts) // it was just written
	env := os.Environ()
	for key, value := range facts {
		if _, list := value.([]any); !list {
			env = append(env, "SBR_"+strings.ToUpper(key)+"="+passable(fmt.Sprint(value)))
		}
	}
	return env
}

// maxValue bounds one variable: the kernel refuses to start a command with one of 128 KiB.
const maxValue = 8 << 10

// passable makes a text fit for the environment. Some of it came from other members: a zero byte or too long
// a text would keep the command from starting, a line break would look like a variable of its own.
func passable(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
