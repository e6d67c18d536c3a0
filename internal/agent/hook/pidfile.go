package hook

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// signal signals the process of the pid file, if there is one, and logs how it went.
func (r *Runner) signal(f Facts) {
	if r.opt.PIDFile == "" {
		return
	}
	log := f.log(r.log).With("pid-file", r.opt.PIDFile, "signal", r.opt.Signal)
	pid, err := readPID(r.opt.PIDFile)
	if err == nil {
		log = log.With("pid", pid)
		err = send(pid, r.sig)
	}
	if err != nil {
		log.Error("sbr: no signal was sent", "problem", err.Error())
		return
	}
	log.Info("sbr: signal sent")
}

// readPID reads one positive number.
func readPID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return parsePID(data)
}

func parsePID(data []byte) (int, error) {
	text := strings.TrimSpace(string(data))
	pid, err := strconv.ParseUint(text, 10, 31)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the file must hold one positive number, the pid; it begins with %.20q", text)
	case pid <= 1:
		return 0, fmt.Errorf("the file holds %d, which is not the pid of a process to signal", pid)
	case int(pid) == os.Getpid():
		return 0, fmt.Errorf("the file holds %d, the pid of this process", pid)
	}
	return int(pid), nil
}

func send(pid int, sig os.Signal) error {
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(sig)
		_ = process.Release() // nothing was waited for
	}
	if errors.Is(err, os.ErrProcessDone) {
		return errors.New("no such process: the file is stale")
	}
	return err
}
