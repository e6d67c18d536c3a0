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
func (w *watchFlags) run(ctx context.Context, s streams, client *agentClient, view agentView,
	output string) error {
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
	show := s.changes(view, output)
	if f, ok := s.out.(*os.File); ok && isTerminal(f) && output == formatText {
		show = func(a *agentAnswer, err error) error { return draw(f, view, a, err) }
	}
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

// Escape sequences of ECMA-48. The screen is cleared behind the text, not before it, so that it does not
// flicker.
const (
	homeCursor = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

// draw draws an answer, or why there is none, over the last one.
func draw(to *os.File, view agentView, a *agentAnswer, err error) error {
	p := paint(to)
	text := time.Now().Format("15:04:05") + "\n\n"
	if err != nil {
		text += p.red("sbr: "+err.Error()) + "\n"
	} else {
		text += view.text(a, p)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if _, height, err := term.GetSize(int(to.Fd())); err == nil && height > 1 {
		lines = lines[:min(len(lines), height-1)]
	}
	_, err = io.WriteString(to, homeCursor+strings.Join(lines, clearLine+"\n")+clearLine+"\n"+clearBelow)
	return err
}

// changes prints one line for each answer that differs from the last one; why there is none goes to standard
// error.
func (s streams) changes(view agentView, output string) func(*agentAnswer, error) error {
	last := ""
	return func(a *agentAnswer, problem error) error {
		line, to := "", s.err
		if problem != nil {
			line = "sbr: " + problem.Error()
		} else {
			to = s.out
			var err error
			if line, err = view.change(a, output); err != nil {
				return err
			}
		}
		if line == last {
			return nil
		}
		last = line
		if problem == nil && output == formatText {
			line = time.Now().Format("15:04:05") + "  " + line
		}
		if _, err := fmt.Fprintln(to, line); problem == nil {
			return err
		}
		return nil
	}
}
