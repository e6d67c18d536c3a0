package lab

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// prefix begins the name of every network namespace that a lab makes.
const prefix = "sbrlab"

// bridgeName is the part of a namespace's name that a host has for its own: no host may be called so.
const bridgeName = "bridge"

// owner is the process that a lab belongs to. A process id alone would not do: it is used again.
type owner struct {
	pid   int
	start uint64 // in clock ticks since the machine's
}

// thisProcess returns the owner of the labs that are made here.
func thisProcess() (owner, error) {
	start, err := startOf(os.Getpid())
	if err != nil {
		return owner{}, fmt.Errorf("lab: %w", err)
	}
	return owner{pid: os.Getpid(), start: start}, nil
}

// alive reports whether the owner still runs.
func (o owner) alive() bool {
	start, err := startOf(o.pid)
	return err == nil && start == o.start
}

// startOf reads when a process was started; an error is returned when there is none, or only what its parent
// has not yet collected.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStart(string(stat))
}

// parseStart reads the 22nd field of a stat file. The program's name, the second, stands in brackets and may
// hold anything.
func parseStart(stat string) (uint64, error) {
	_, rest, found := cutLast(stat, ")")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return 0, fmt.Errorf("a stat file with %d fields", len(fields))
	}
	if fields[0] == "Z" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// labName is what the namespaces of one lab have in common.
func labName(o owner, id string) string {
	return fmt.Sprintf("%s-%d-%d-%s", prefix, o.pid, o.start, id)
}

// parseOwner reads the owner out of the name of a namespace; false: no lab has made it.
func parseOwner(namespace string) (owner, bool) {
	parts := strings.SplitN(namespace, "-", 5)
	if len(parts) != 5 || parts[0] != prefix {
		return owner{}, false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return owner{}, false
	}
	start, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return owner{}, false
	}
	return owner{pid: pid, start: start}, true
}

// hostName is what a host can be called.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,31}$`)

func validName(name string) error {
	if !hostName.MatchString(name) || name == bridgeName {
		return fmt.Errorf("lab: a host cannot be called %q: letters, digits, dots and dashes, at most 32, and not %q", name, bridgeName)
	}
	return nil
}
