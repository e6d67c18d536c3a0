//go:build unix

package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

// keeperFD is where the keeper finds its parent.
const keeperFD = 3

// Keep is the life of a keeper. It returns when nothing of the program is left.
func Keep() error {
	if _, err := unix.GetsockoptInt(keeperFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("%w: %w", ErrNotKeeper, err)
	}
	// The kernel kills the program when the thread that started it ends, and this one does not end before the process.
	runtime.LockOSThread()
	children := deaf()
	unix.CloseOnExec(keeperFD)
	parent := os.NewFile(keeperFD, "parent")
	decoder := json.NewDecoder(parent)
	var first order
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil // its parent has ended without a program
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotKeeper, err)
	case first.Start == nil:
		return ErrNotKeeper
	}
	k := &keeper{start: *first.Start, until: first.Start.Until, to: json.NewEncoder(parent), cancel: func() {}}
	err := adopt()
	if err == nil {
		err = k.fork()
	}
	if err != nil {
		k.tell(report{Problem: err.Error(), Late: errors.Is(err, ErrTooLate)})
		return nil
	}
	k.tell(report{Pid: k.pid})
	k.run(receive(decoder), children)
	return nil
}

// deaf makes this process ignore what is meant for the program, in such a way that the program does not: signals with a handler are as they
// were after an exec. The channel receives when a child has changed.
func deaf() <-chan os.Signal {
	unheard := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGPIPE} {
		if !signal.Ignored(sig) {
			signal.Notify(unheard, sig)
		}
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	return children
}

// receive reads orders until the parent is gone.
func receive(from *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if from.Decode(&o) != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// keeper looks after one program. It belongs to one goroutine: the one that waits for processes is the one that sends them signals.
type keeper struct {
	start start
	until limit
	to    *json.Encoder

	pid int
	// status is how the program itself has ended. Until it is known the number of the program, and of its group, is nobody else's.
	status *Status

	stopping, killing bool
	because           string
	// over ends when the program has had its time to end.
	over   context.Context
	cancel context.CancelFunc
	// looks counts those for the end of a program that was told to stop, blows the attempts to kill. warned is when the last complaint was.
	looks, blows int
	warned       time.Time
}

// tell reports to the parent. If it is gone, its orders end, which is noticed there.
func (k *keeper) tell(r report) { _ = k.to.Encode(r) }

func (k *keeper) fork() error {
	if left, ok := k.until.left(); ok && left <= 0 {
		return ErrTooLate
	}
	pid, err := syscall.ForkExec(k.start.Path, k.start.Args, &syscall.ProcAttr{Env: k.start.Env, Files: []uintptr{0, 1, 2}, Sys: attributes()})
	if err != nil {
		return &os.PathError{Op: "start", Path: k.start.Path, Err: err}
	}
	k.pid = pid
	if k.start.Terminal != 0 {
		give(pid)
	}
	return nil
}

func (k *keeper) run(orders <-chan order, children <-chan os.Signal) {
	k.over = context.Background()
	for !k.gone() {
		k.judge()
		again := time.NewTimer(k.pause())
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil
				k.stop("sbr run has ended", unix.SIGTERM)
				break
			}
			k.obey(o)
		case <-children:
		case <-k.over.Done():
			k.kill(context.Cause(k.over).Error())
		case <-again.C:
			if k.start.Terminal != 0 && k.status == nil && held(k.pid) {
				k.signal(-k.pid, unix.SIGCONT) // Ctrl-Z
			}
		}
		again.Stop()
	}
	k.cancel()
	if k.start.Terminal != 0 {
		give(k.start.Terminal)
	}
	k.tell(report{Ended: k.status})
}

// gone waits for whoever has ended, and reports whether nobody is left.
func (k *keeper) gone() bool {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG|unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD): // whatever is left of a tree, its top is a child of this process
			return k.status != nil && !k.grouped()
		case err != nil || pid == 0:
			return false
		case pid != k.pid:
		case ws.Stopped():
			k.resume(ws.StopSignal())
		case ws.Signaled():
			k.status = &Status{Signal: int(ws.Signal()), Because: k.because}
		case ws.Exited():
			k.status = &Status{Code: ws.ExitStatus(), Because: k.because}
		}
	}
}

// grouped reports whether the group of the program has processes that are no descendants of this one: where those cannot be adopted.
func (k *keeper) grouped() bool {
	return runtime.GOOS != "linux" && !errors.Is(unix.Kill(-k.pid, 0), unix.ESRCH)
}

// resume continues a program that the terminal has stopped: nobody could continue it any more, and it would lose its turn.
func (k *keeper) resume(by syscall.Signal) {
	if k.start.Terminal != 0 && (by == unix.SIGTSTP || by == unix.SIGTTIN || by == unix.SIGTTOU) {
		k.signal(-k.pid, unix.SIGCONT)
	}
}

// judge decides by itself what nobody has to order.
func (k *keeper) judge() {
	if k.status != nil {
		k.stop("it has ended, but not all that it has started", unix.SIGTERM)
	}
	if left, ok := k.until.left(); ok && left <= 0 {
		k.kill("its time is over, and was not extended")
	} else if ok && left <= k.start.Notice {
		k.stop("its time is nearly over, and was not extended", unix.SIGTERM)
	}
	if k.killing {
		k.strike()
	}
}

// lookAgain is how often a program at rest is looked at: for the clock, which is not the one of timers.
const lookAgain = time.Second

// pause is how long nothing needs to be done unless something happens.
func (k *keeper) pause() time.Duration {
	if k.killing {
		return soon(k.blows)
	}
	d := lookAgain
	if k.stopping { // others wait for the end: it is looked for as well, in case its signal comes late
		k.looks++
		d = soon(k.looks)
	}
	if left, ok := k.until.left(); ok {
		for _, next := range []time.Duration{left, left - k.start.Notice} {
			if next > 0 {
				d = min(d, next)
			}
		}
	}
	return d
}

// soon is a pause that grows with each time.
func soon(times int) time.Duration { return min(time.Millisecond<<min(times, 8), lookAgain/4) }

func (k *keeper) obey(o order) {
	switch sig := unix.Signal(o.Signal); {
	case o.Extend != nil:
		k.until = *o.Extend
	case o.Kill != "":
		k.kill(o.Kill)
	case o.Stop != "" && !k.stopping:
		k.stop(o.Stop, sig)
	case sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTERM: // as from a terminal
		k.signal(-k.pid, sig)
	default:
		k.signal(k.pid, sig)
	}
}

// signal reaches the program (or, with its negative number, its group) as long as the number is certainly its own.
func (k *keeper) signal(target int, sig unix.Signal) {
	if k.status == nil || runtime.GOOS != "linux" {
		_ = unix.Kill(target, sig) // who is gone needs none
	}
}

// own is the group that signal reaches.
func (k *keeper) own() int {
	if k.status == nil {
		return k.pid
	}
	return 0
}

// stop asks everybody to end, once.
func (k *keeper) stop(why string, sig unix.Signal) {
	if k.stopping {
		return
	}
	k.stopping, k.because = true, why
	k.tell(report{Stopping: why})
	k.over, k.cancel = patience.WithTimeout(context.Background(), k.start.StopTimeout, fmt.Errorf("it did not end within %v", k.start.StopTimeout))
	k.signal(-k.pid, sig)
	k.signal(-k.pid, unix.SIGCONT) // one that is stopped would not notice
	stray(sig, k.own())
}

func (k *keeper) kill(why string) {
	if k.killing {
		return
	}
	if !k.stopping {
		k.stopping, k.because = true, why
	}
	k.killing, k.warned = true, time.Now()
	k.cancel()
	k.over = context.Background()
	k.tell(report{Killing: why})
}

// complainEvery is how often those are named that do not end.
const complainEvery = 10 * time.Second

// strike kills whoever is there now. It is repeated until nobody is: who forks at this moment leaves a child.
func (k *keeper) strike() {
	k.blows++
	k.signal(-k.pid, unix.SIGKILL)
	stray(unix.SIGKILL, 0)
	if time.Since(k.warned) > complainEvery {
		k.warned = time.Now()
		k.tell(report{Left: alive(0)})
	}
}
