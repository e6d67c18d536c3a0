package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addCompletion gives root the command that prints the completion of a shell, which is cobra's own, and says
// what the values of flags and the arguments can be. It comes after all other commands.
func addCompletion(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "print the completion for bash, zsh, fish or powershell"
			// without it cobra takes any word for a shell
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	walk(root, completeValues)
}

// walk calls f with a command and all below it.
func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		walk(sub, f)
	}
}

// fileFlags take a path; with extensions, files with others are left out.
var (
	configuration = []string{"yaml", "yml", "json"}
	fileFlags     = map[string][]string{
		"file": configuration, "config": configuration, "to": configuration, "ca-file": {"pem", "crt"},
		"token-file": nil, "kubeconfig": nil, "html": {"html"},
	}
)

// completeValues says what the values of the flags of a command can be, where its constructor did not. Flags
// that are not known here take a number, a duration or a name, for which nothing can be offered.
func completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, known := c.GetFlagCompletionFunc(f.Name); known {
			return
		}
		extensions, isFile := fileFlags[f.Name]
		var complete cobra.CompletionFunc
		switch {
		case isFile && len(extensions) > 0:
			complete = cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
		case isFile:
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		case strings.Contains(f.Value.Type(), "|"):
			words := strings.Split(f.Value.Type(), "|")
			// not a word but a kind
			words = slices.DeleteFunc(words, func(word string) bool { return word == "duration" })
			complete = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
		default:
			return
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, complete) // it exists, and has none
	})
	if c.ValidArgsFunction == nil && strings.Contains(c.Use, "FILE|DIR") {
		c.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
}
