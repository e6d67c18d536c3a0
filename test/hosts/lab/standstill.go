//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Standstill is a host on which nothing runs: what a virtual machine is that was suspended. It belongs to one
// goroutine.
type Standstill struct {
	host    *Host
	stopped map[int]*handle
}

// handle is a process that cannot be mistaken for another process which has got its number since.
type handle struct {
	fd      int
	program string
}

// Freeze stops everything that runs on a host, also what has been started by what was started there, and
// returns when all of it stands still. What is supervised must not be started again meanwhile.
func (l *Lab) Freeze(ctx context.Context, name string) (*Standstill, error) {
	l.mu.Lock() // a change of the faults runs programs on the hosts, which are not to be stopped
	defer l.mu.Unlock()
	if err := l.known(name); err != nil {
		return nil, err
	}
	s := &Standstill{host: l.host(name), stopped: make(map[int]*handle)}
	for {
		again, err := s.stop(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lab: freezing %s: %w", name, err), s.Continue())
		}
		if !again {
			return s, nil
		}
		if !slept(ctx, emptyPoll) {
			return nil, errors.Join(fmt.Errorf("lab: %s does not stand still: %w", name, context.Cause(ctx)),
				s.Continue())
		}
	}
}

// stop stops what runs now, and reports whether anything did.
func (s *Standstill) stop(ctx context.Context) (again bool, err error) {
	pids, err := pidsIn(ctx, s.host.namespace)
	if err != nil {
		return false, err
	}
	for _, pid := range pids {
		if state := stateOf(pid); state == "" || strings.ContainsAny(state, "TZX") {
			continue
		}
		again = true
		if s.stopped[pid] != nil {
			continue // its signal is on the way
		}
		h, err := s.host.grip(pid)
		if err != nil {
			return again, err
		}
		if h == nil {
			continue
		}
		s.stopped[pid] = h
		if err := unix.PidfdSendSignal(h.fd, unix.SIGSTOP, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return again, err
		}
	}
	return again, nil
}

// grip takes hold of a process of the host; nil: it has ended, or its number is that of a process elsewhere.
func (h *Host) grip(pid int) (*handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// Looked at now that the number cannot become another's unnoticed: a signal to an ended process reaches
	// no process.
	its, err1 := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	ours, err2 := os.Stat(filepath.Join(namespaces, h.namespace))
	if err1 != nil || err2 != nil || !os.SameFile(its, ours) {
		return nil, unix.Close(fd)
	}
	return &handle{fd: fd, program: programOf(pid)}, nil
}

// Continue lets the programs of these names go on, by the names of their files; without names all that still
// stand. When several go on, children do before their parents.
func (s *Standstill) Continue(programs ...string) error {
	var errs []error
	for _, pid := range slices.Backward(sortedKeys(s.stopped)) {
		h := s.stopped[pid]
		if len(programs) > 0 && !slices.Contains(programs, h.program) {
			continue
		}
		delete(s.stopped, pid)
		if err := unix.PidfdSendSignal(h.fd, unix.SIGCONT, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("lab: %s on %s does not go on: %w", h.program, s.host.name, err))
		}
		errs = append(errs, unix.Close(h.fd))
	}
	return errors.Join(errs...)
}

func sortedKeys(m map[int]*handle) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Crash ends everything on a host at once, as a power failure does. What is supervised starts again, unless
// that is switched off: then all that is supervised is known to have ended when Crash returns.
func (l *Lab) Crash(ctx context.Context, name string) error {
	l.mu.Lock() // as in Freeze
	defer l.mu.Unlock()
	if err := l.known(name); err != nil {
		return err
	}
	h := l.host(name)
	h.mu.Lock()
	ran := slices.Clone(h.started)
	h.mu.Unlock()
	if err := empty(ctx, h.namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	for _, p := range ran { // gone from the namespace is a moment before its end is noticed
		if _, err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Running is one process on a host.
type Running struct {
	Pid int
	// Program is the name of its file.
	Program string
}

// Processes are the processes that run on the host now, paused or not, without ended ones that were not
// waited for.
func (h *Host) Processes(ctx context.Context) ([]Running, error) {
	pids, err := pidsIn(ctx, h.namespace)
	if err != nil {
		return nil, err
	}
	var all []Running
	for _, pid := range pids {
		if state := stateOf(pid); state != "" && !strings.ContainsAny(state, "ZX") {
			all = append(all, Running{Pid: pid, Program: programOf(pid)})
		}
	}
	return all, nil
}

// Kill ends the processes of these programs on the host, by the names of their files, and returns how many
// there were.
func (h *Host) Kill(ctx context.Context, program string) (int, error) {
	running, err := h.Processes(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range running {
		if p.Program != program {
			continue
		}
		hold, err := h.grip(p.Pid)
		if err != nil {
			return n, err
		}
		if hold == nil {
			continue
		}
		if unix.PidfdSendSignal(hold.fd, unix.SIGKILL, nil, 0) == nil {
			n++
		}
		if err := unix.Close(hold.fd); err != nil {
			return n, err
		}
	}
	return n, nil
}

// programOf is the name of the file that a process runs; empty if it has ended.
func programOf(pid int) string {
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return filepath.Base(strings.TrimSuffix(file, " (deleted)"))
}

// stateOf is the letter for what a process does; empty if there is none.
func stateOf(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The program's name stands in brackets before and may hold anything.
	fields := strings.Fields(string(stat)[strings.LastIndexByte(string(stat), ')')+1:])
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}
