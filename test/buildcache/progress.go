package buildcache

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	terminalBeat = time.Second
	logBeat      = 15 * time.Second
)

// progress tells that a long step is still alive: on a terminal in one line that it rewrites, elsewhere by a line now and then.
type progress struct {
	out      io.Writer
	owner    string
	label    string
	started  time.Time
	terminal bool
	stop     chan struct{}
	stopped  sync.WaitGroup
}

func startProgress(out io.Writer, owner, label string) *progress {
	p := &progress{out: out, owner: owner, label: label, started: time.Now(), terminal: isTerminal(out), stop: make(chan struct{})}
	beat := logBeat
	if p.terminal {
		beat = terminalBeat
	}
	p.say("building")
	p.stopped.Go(func() { p.beatEvery(beat) })
	return p
}

func (p *progress) beatEvery(d time.Duration) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-ticker.C:
			p.say("building")
		}
	}
}

func (p *progress) finish(err error) {
	close(p.stop)
	p.stopped.Wait()
	if err != nil {
		p.say("failed")
	} else {
		p.say("built")
	}
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

func (p *progress) say(state string) {
	text := fmt.Sprintf("%s: %s %s: %s", p.owner, state, p.label, time.Since(p.started).Round(time.Second))
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
