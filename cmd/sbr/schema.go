package main

import (
	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const schemaConfigHelp = `Config prints the JSON Schema (draft 2020-12) of sbr.yaml. An editor that knows it completes keys, says what they mean, and marks what is
misspelt. Editors with the YAML language server take it from a line on top of a file:

  # yaml-language-server: $schema=sbr.schema.json

The schema accepts every file that sbr config check accepts; settings that contradict each other only sbr config check finds.`

const schemaScenarioHelp = `Scenario prints the JSON Schema (draft 2020-12) of the files that sbr simulate plays. An editor that knows it completes keys, says what
they mean, and marks what is misspelt. Editors with the YAML language server take it from a line on top of a file:

  # yaml-language-server: $schema=scenario.schema.json

The schema accepts every file that sbr simulate accepts. What needs the whole file (whether a member exists, whether a step is in time) only
sbr simulate finds.`

// newSchemas are the verbs of sbr schema.
func newSchemas(s streams) []*cobra.Command {
	schema := func(of, file, help, example string, data func() []byte) *cobra.Command {
		return &cobra.Command{
			Use: of, Short: "print the JSON Schema of " + file, Long: help, Example: example, Args: cobra.NoArgs,
			RunE: verb(func() error {
				_, err := s.out.Write(data())
				return err
			}),
		}
	}
	return []*cobra.Command{
		schema("config", "sbr.yaml", schemaConfigHelp, "  sbr schema config > sbr.schema.json", config.Schema),
		schema("scenario", "scenario files", schemaScenarioHelp, "  sbr schema scenario > scenario.schema.json",
			scenario.Schema),
	}
}
