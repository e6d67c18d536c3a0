package program

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process is a process as in /proc.
type process struct {
	pid, parent, group int
	// started tells two processes with the same number apart.
	started uint64
	// state is the letter of /proc: D waits and cannot be interrupted, T was stopped by a signal.
	state byte
}

// zombie reports whether the process has ended, and was not reaped.
func (p process) zombie() bool { return p.state == 'Z' || p.state == 'X' }

var errStat = errors.New("program: not a line of /proc/PID/stat")

// parseStat reads /proc/PID/stat. The program's name stands in brackets and may hold anything.
func parseStat(line []byte) (process, error) {
	number, rest, ok := bytes.Cut(line, []byte(" ("))
	end := bytes.LastIndexByte(rest, ')')
	if !ok || end < 0 {
		return process{}, errStat
	}
	const parent, group, started = 1, 2, 19 // counted from the state
	fields := bytes.Fields(rest[end+1:])
	if len(fields) <= started {
		return process{}, errStat
	}
	p := process{state: fields[0][0]}
	var err error
	for to, text := range map[*int][]byte{&p.pid: number, &p.parent: fields[parent], &p.group: fields[group]} {
		if *to, err = strconv.Atoi(string(text)); err != nil {
			return process{}, errStat
		}
	}
	if p.started, err = strconv.ParseUint(string(fields[started]), 10, 64); err != nil {
		return process{}, errStat
	}
	return p, nil
}

func lookUp(pid string) (process, error) {
	line, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(line)
}

// checkProc reports whether processes can be found here.
func checkProc() error {
	self, err := lookUp("self")
	if err == nil && self.pid != os.Getpid() {
		err = errors.New("it belongs to another pid namespace")
	}
	if err != nil {
		return fmt.Errorf("program: without /proc nothing can be ended for certain: mount it: %w", err)
	}
	return nil
}

// descendants are the children of root, and theirs. A process whose parent ends meanwhile may be missed; it
// is root's child at the next look.
func descendants(root int) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, _ := dir.Readdirnames(-1)
	children := make(map[int][]process)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, err := lookUp(name); err == nil {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var all []process
	for next := children[root]; len(next) > 0; {
		p := next[0]
		next = append(next[1:], children[p.pid]...)
		delete(children, p.pid)
		all = append(all, p)
	}
	return all
}

// send sends a signal to this process, never to another one that got its number since.
func (p process) send(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }() // there is nothing to lose
	}
	now, gone := lookUp(strconv.Itoa(p.pid))
	if gone != nil || now.started != p.started {
		return unix.ESRCH
	}
	if err != nil { // before Linux 5.3, or forbidden by a sandbox
		return unix.Kill(p.pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}
