package main

import (
	"github.com/spf13/cobra"
)

const reportHelp = `Report works on the results of sbr explore random -o json. Its help says what is in them.`

func newReport(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "report", Short: "join the results of exploring", Long: reportHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newReportMerge(s))
	return c
}
