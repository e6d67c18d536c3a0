package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeTable writes a line for each mutant, what is wrong, and the sum.
func writeTable(to io.Writer, found []finding, m mode) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	head := "MUTANT\tPROMISE\tCAUGHT BY\tSECONDS"
	if m == each {
		head = "MUTANT\tPROMISE\tCAUGHT BY\tBY THE SIMULATOR ALONE\tSECONDS"
	}
	fmt.Fprintln(w, head)
	for i := range found {
		f := &found[i]
		by := f.briefly()
		fmt.Fprintf(w, "%s\t%s\t%s\t", f.Name, f.Promise, by)
		if m == each {
			fmt.Fprintf(w, "%s\t", f.alone())
		}
		fmt.Fprintf(w, "%.1f\n", f.Took.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range found {
		if wrong := found[i].wrong(); wrong != "" {
			fmt.Fprintf(to, "\n%s\n", wrong)
		}
	}
	_, err := fmt.Fprintf(to, "\n%s\n", sum(found, m))
	return err
}

// words is where and, if a checker of the simulator said so, which promise.
func (c *catch) words() string {
	switch {
	case c == nil:
		return ""
	case c.Hung:
		return c.Caught + " (hangs)"
	case len(c.Broken) > 0:
		return c.Caught + " (" + strings.Join(c.Broken, " ") + ")"
	default:
		return c.Caught
	}
}

// briefly is what became of a mutant, for the table and the progress.
func (f *finding) briefly() string {
	switch {
	case f.Err != nil:
		return "ERROR"
	case f.survived() != "":
		return "NOT CAUGHT"
	default:
		return f.By.words()
	}
}

// alone is what the simulator by itself made of it.
func (f *finding) alone() string {
	switch {
	case f.Alone != nil:
		return f.Alone.words()
	case f.Blind != "":
		return "blind: " + f.Blind
	default:
		return "no"
	}
}

// wrong is what has to be done about a mutant, with what it is. Empty: nothing.
func (f *finding) wrong() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	if s := f.survived(); s != "" {
		return fmt.Sprintf("%s: %s\n    %s", f.Name, s, f.What)
	}
	return ""
}

func sum(found []finding, m mode) string {
	caught, bad := 0, 0
	for i := range found {
		switch f := &found[i]; {
		case f.Err != nil:
			bad++
		case f.By != nil:
			caught++
		}
	}
	text := fmt.Sprintf("%d of %d mutants caught", caught, len(found))
	if m == each {
		text += fmt.Sprintf(", %d of them by the simulator alone", seenAlone(found))
	}
	if bad > 0 {
		text += fmt.Sprintf("; %d could not be tried", bad)
	}
	return text
}
