package hook

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Options are the settings of a Runner. Start from DefaultOptions; commands and PIDFile may stay empty.
type Options struct {
	// OnSuspend, OnResume and OnDown are commands with their arguments; no shell looks at them. Empty: none.
	OnSuspend, OnResume, OnDown []string
	// Timeout is how long each run may take. Must be positive.
	Timeout time.Duration
	// PIDFile is the path of a file that holds the pid of the process to signal when this member is down. Empty: none.
	PIDFile string
	// Signal is what it gets, by name. It means nothing without PIDFile.
	Signal string
	// Log takes what happens, and what the commands print. Nil: slog.Default().
	Log *slog.Logger
}

// DefaultOptions has no commands; a run may take 10 s, and the signal is SIGTERM.
func DefaultOptions() Options { return Options{Timeout: 10 * time.Second, Signal: "SIGTERM"} }

// Validate reports all problems at once: a command that does not exist or cannot be executed, a signal that nobody knows, a time-out that
// is not positive. The names are those of sbr.yaml.
func (o Options) Validate() error {
	_, _, err := o.resolve()
	return err
}

// resolve also returns what the names stand for.
func (o Options) resolve() (paths map[event]string, sig os.Signal, err error) {
	var problems []error
	if o.Timeout <= 0 {
		problems = append(problems, fmt.Errorf("hooks.timeout: is %v: it must be positive", o.Timeout))
	}
	paths = make(map[event]string)
	for _, e := range []event{suspend, resume, down} {
		command := o.command(e)
		if len(command) == 0 {
			continue
		}
		path, err := executable(command)
		if err != nil {
			problems = append(problems, fmt.Errorf("hooks.on-%s: %w", e, err))
		}
		paths[e] = path
	}
	if o.PIDFile != "" {
		if sig, err = signalNamed(o.Signal); err != nil {
			problems = append(problems, fmt.Errorf("hooks.signal: %w", err))
		}
	}
	return paths, sig, errors.Join(problems...)
}

func (o Options) command(e event) []string {
	switch e {
	case suspend:
		return o.OnSuspend
	case resume:
		return o.OnResume
	default:
		return o.OnDown
	}
}

// executable finds the file of a command, so that a later change of the environment does not.
func executable(command []string) (string, error) {
	if strings.TrimSpace(command[0]) == "" {
		return "", errors.New("the command is empty: name an executable file")
	}
	for _, arg := range command {
		if strings.ContainsRune(arg, 0) {
			return "", fmt.Errorf("%q: an argument cannot hold a zero byte", arg)
		}
	}
	path, err := exec.LookPath(command[0])
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%q is not in $PATH: give the whole path of an executable file", command[0])
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("%q does not exist", command[0])
	case errors.Is(err, os.ErrPermission):
		return "", fmt.Errorf("%q cannot be executed: it must be a file, with the right to execute it (chmod +x)", command[0])
	case err != nil:
		return "", fmt.Errorf("%q cannot be executed: %w", command[0], cause(err))
	}
	return path, nil
}

// cause leaves away what package exec puts before a problem: the name, a second time.
func cause(err error) error {
	if e := new(exec.Error); errors.As(err, &e) {
		return e.Err
	}
	return err
}
