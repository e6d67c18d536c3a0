package hook

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
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

// maxPIDFile is more than the longest pid with blanks around it.
const maxPIDFile = 64

// readPID reads one positive number. It does not wait for the writer of a named pipe.
func readPID(path string) (int, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(err, fmt.Errorf("%s is not a file", path))
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPIDFile+1))
	if err != nil {
		return 0, err
	}
	return parsePID(data)
}

func parsePID(data []byte) (int, error) {
	text := strings.TrimSpace(string(data))
	pid, err := strconv.ParseUint(text, 10, 31)
	switch {
	case len(data) > maxPIDFile || err != nil:
		return 0, fmt.Errorf("the file must hold one positive number, the pid; it begins with %q", shorten(text))
	case pid <= 1:
		return 0, fmt.Errorf("the file holds %d, which is not the pid of a process to signal", pid)
	case int(pid) == os.Getpid():
		return 0, fmt.Errorf("the file holds %d, the pid of this process", pid)
	}
	return int(pid), nil
}

func shorten(s string) string {
	const most = 20
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
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
