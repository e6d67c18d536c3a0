package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// explainUsage turns the errors of bad usage, which are cobra's and pflag's, into sentences that say what is
// wrong and where to read on. It comes after all commands and flags are there.
func explainUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	walk(root, func(c *cobra.Command) {
		allowed := c.Args
		if allowed == nil {
			return // it checks its arguments itself
		}
		c.Args = func(c *cobra.Command, args []string) error {
			err := allowed(c, args)
			switch {
			case err == nil || errors.As(err, new(badInput)):
				return err
			case c.HasSubCommands():
				return unknownCommand(c, args[0])
			default:
				return seeHelp(c, fmt.Errorf("%s takes %s, and was given %s", c.CommandPath(), operands(c), given(args)))
			}
		}
	})
}

// operands is what the usage line of a command says of its arguments; flags in it are none.
func operands(c *cobra.Command) string {
	_, rest, _ := strings.Cut(c.Use, " ")
	if rest = strings.TrimSpace(flagsInUse.ReplaceAllString(rest, "")); rest == "" {
		return "no argument"
	}
	return rest
}

var flagsInUse = regexp.MustCompile(`\[?--?[a-z]\S*( [A-Z][^\s\]]*)?\]?`)

func given(args []string) string {
	switch len(args) {
	case 0:
		return "none"
	case 1:
		return strconv.Quote(args[0])
	default:
		return fmt.Sprintf("%d arguments", len(args))
	}
}

func unknownCommand(c *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q for %q", word, c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(word); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return seeHelp(c, err)
}

func seeHelp(c *cobra.Command, err error) error {
	return fmt.Errorf("%w (see %s --help)", err, c.CommandPath())
}

// plainTypes says what the values of pflag's own types are. The types of this program say it in their errors.
var plainTypes = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative", "float64": "a number",
	"duration": "a duration such as 20s", "bool": "true or false",
}

// flagError is the error of a flag that c does not have, or whose value it cannot take.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); len(words) > 0 && c.HasSubCommands() {
		return unknownCommand(c, words[0]) // the flag may be one of the command that was meant
	}
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		err = unknownFlag(c, unknown)
	case errors.As(err, &missing):
		err = fmt.Errorf("%s needs a value", dashed(missing.GetFlag()))
	case errors.As(err, &invalid):
		name, value := dashed(invalid.GetFlag()), invalid.GetValue()
		what, plain := plainTypes[invalid.GetFlag().Value.Type()]
		switch {
		case errors.Is(err, strconv.ErrRange):
			err = fmt.Errorf("%s: %q is out of range", name, value)
		case plain:
			err = fmt.Errorf("%s takes %s, and was given %q", name, what, value)
		default:
			err = fmt.Errorf("%s: %w", name, invalid.Unwrap())
		}
	}
	return seeHelp(c, err)
}

// unknownFlag names the nearest known flag, too.
func unknownFlag(c *cobra.Command, unknown *pflag.NotExistError) error {
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		return fmt.Errorf("unknown flag -%s", letters)
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	name := unknown.GetSpecifiedName()
	if nearest, near := strictyaml.Nearest(name, known); near {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, nearest)
	}
	return fmt.Errorf("unknown flag --%s", name)
}

func dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand + ", --" + f.Name
	}
	return "--" + f.Name
}

// cobra's words for two flags that exclude each other, for which it has no type.
var exclusive = regexp.MustCompile(`^if any flags in the group \[(\S+) (\S+)\] are set none of the others can be; .*$`)

// oneLine is an error that did not pass explainUsage in one line.
func oneLine(err error) error {
	line := strings.Join(strings.Fields(err.Error()), " ")
	return errors.New(exclusive.ReplaceAllString(line, "--$1 and --$2 cannot go together"))
}

// addHelp gives root cobra's command that prints the help of another command, with an error for a command
// that does not exist: cobra ends with 0 there. It comes after all other commands.
func addHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	c, _, _ := root.Find([]string{"help"}) // it was just made
	c.Use, c.Short, c.Long, c.Run = "help [COMMAND…]", "help about a command", "", nil
	c.RunE = func(c *cobra.Command, args []string) error {
		found, rest, err := c.Root().Find(args)
		switch {
		case err != nil:
			return err
		case len(rest) > 0:
			return unknownCommand(found, rest[0])
		default:
			return found.Help()
		}
	}
}
