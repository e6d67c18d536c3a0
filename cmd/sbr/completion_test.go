package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/strategies"
)

// Flags with words, files or folders complete them; of the others only numbers, durations and names are left.
func TestCompletion_EveryFlag(t *testing.T) {
	free := []string{"bool", "int", "uint64", "duration", "A-B", "stringToString"}
	names := []string{
		"context", "endpoint", "holder", "key", "lease", "lease-name", "namespace", "owner", "pause", "role", "service-account", "shard", "singleton", "split", "system", "url",
	}
	available(func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, known := c.GetFlagCompletionFunc(f.Name)
			require.True(t, known || slices.Contains(free, f.Value.Type()) || slices.Contains(names, f.Name),
				"%s --%s (%s) offers nothing", c.CommandPath(), f.Name, f.Value.Type())
		})
	})
}

// complete asks for the completions of a command line, as the scripts of the shells do.
func complete(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	require.Zero(t, run(append([]string{"__complete"}, args...), streams{in: strings.NewReader(""), out: &out, err: &errOut}))
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestCompletion_Values(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want []string
	}{
		{[]string{"status", "-o", ""}, []string{"text", "json", "yaml", ":4"}},
		{[]string{"manifests", "-o", ""}, []string{"yaml", "json", ":4"}},
		{[]string{"explain", "timing", "--profile", ""}, []string{"lan", "wan", "local", ":4"}},
		{[]string{"config", "check", "-f", ""}, []string{"yaml", "yml", "json", ":8"}},
		{[]string{"lease", "acquire", "--for", ""}, []string{"infinite", ":4"}},
		{[]string{"demo", "--strategy", ""}, append(strategies.Keys(), ":4")},
		{[]string{"explore", "random", "--out", ""}, []string{":16"}},
		{[]string{"status", "--token-file", ""}, []string{":0"}},
		{[]string{"status", "--url", ""}, []string{":4"}},
		{[]string{"status", ""}, []string{":4"}},
		{[]string{"simulate", ""}, []string{":0"}},
		{[]string{"man", ""}, []string{":16"}},
		{[]string{"completion", "z"}, []string{"zsh\tGenerate the autocompletion script for zsh", ":4"}},
	} {
		require.Equal(t, tc.want, complete(t, tc.args...), "%q", tc.args)
	}
}
