package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// watchEvery is the time between two questions of --watch.
const watchEvery = time.Second

// watchFlags say whether, and how long, an agent is asked again.
type watchFlags struct {
	watch bool
	limit time.Duration
}

func addWatch(c *cobra.Command) *watchFlags {
	var w watchFlags
	c.Flags().BoolVar(&w.watch, "watch", false, "ask every second, until it is interrupted")
	c.Flags().DurationVar(&w.limit, "for", 0, "with --watch: how long (default: until it is interrupted)")
	return &w
}

func (w *watchFlags) on() bool { return w.watch || w.limit != 0 }

// run asks until it is interrupted or its time is over.
func (w *watchFlags) run(ctx context.Context, s streams, client *agentClient, view agentView, output string) error {
	if !w.watch || w.limit < 0 {
		return badInput{errors.New("--for: it must be positive, and goes with --watch")}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	ctx, cancel := bounded(ctx, w.limit)
	defer cancel()
	// The first answer tells what is wrong; afterwards an agent may be restarted.
	a, err := client.status(ctx)
	if err != nil {
		return err
	}
	show := newShow(s, view, output)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := show(a, err); err != nil {
			return err // nobody reads it any more
		}
		select {
		case <-ctx.Done():
			return nil // as it was asked for
		case <-tick.C:
		}
		if a, err = client.status(ctx); ctx.Err() != nil {
			return nil
		}
	}
}

// newShow returns what shows one answer, or why there is none.
func newShow(s streams, view agentView, output string) func(*agentAnswer, error) error {
	if f, ok := s.out.(*os.File); ok && isTerminal(f) && output == formatText {
		return (&screen{to: f, view: view}).show
	}
	return (&changes{streams: s, view: view, output: output}).show
}

// screen draws each answer over the last one.
type screen struct {
	to   *os.File
	view agentView
}

// Escape sequences of ECMA-48. The screen is cleared behind the text, not before it, so that it does not flicker.
const (
	homeCursor = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (v *screen) show(a *agentAnswer, err error) error {
	p := paint(v.to)
	text := time.Now().Format("15:04:05") + "\n\n"
	if err != nil {
		text += p.red("sbr: "+err.Error()) + "\n"
	} else {
		text += v.view.text(a, p)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if _, height, err := term.GetSize(int(v.to.Fd())); err == nil && height > 1 {
		lines = lines[:min(len(lines), height-1)]
	}
	_, err = io.WriteString(v.to, homeCursor+strings.Join(lines, clearLine+"\n")+clearLine+"\n"+clearBelow)
	return err
}

// changes prints one line for each answer that differs from the last one; why there is none goes to standard error.
type changes struct {
	streams
	view   agentView
	output string
	last   string
}

func (c *changes) show(a *agentAnswer, err error) error {
	if err != nil {
		if line := "sbr: " + err.Error(); line != c.last {
			c.last = line
			fmt.Fprintln(c.err, line)
		}
		return nil
	}
	line, err := c.view.change(a, c.output)
	if err != nil || line == c.last {
		return err
	}
	c.last = line
	if c.output == formatText {
		line = time.Now().Format("15:04:05") + "  " + line
	}
	_, err = fmt.Fprintln(c.out, line)
	return err
}
