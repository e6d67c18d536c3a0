package main

import (
	"errors"
	"maps"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

const configInitHelp = `Init prints a configuration with every key, a sentence on each, and its default. What is a comment can be changed by taking the # away.

The file is valid as it is printed. It still needs where the lease is kept, if that is not the pod's own cluster, and min-members:
a majority of the cluster.`

func newConfigInit(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "init", Short: "print a commented configuration to start from", Long: configInitHelp,
		Example: "  sbr config init --system payments > sbr.yaml\n  sbr config init --system payments --lease-implementation file --set lease.file.path=/run/payments.lease",
		Args:    cobra.NoArgs,
	}
	system := c.Flags().String("system", "my-cluster", "the name of the cluster")
	implementation := addWord(c, "lease-implementation", "", config.ImplementationKubernetes,
		"which store keeps the lease: a `KEY` of the block lease", config.Implementations()...)
	set := c.Flags().StringToString("set", nil, "other keys to set, by their paths")
	c.RunE = verb(func() error {
		if *system == "" {
			return badInput{errors.New("--system is empty: it must name the cluster")}
		}
		values := map[string]string{"system": *system, "split-brain-resolver.lease-majority.lease-implementation": *implementation}
		maps.Copy(values, *set)
		file, err := config.Template(values)
		if err != nil {
			return badInput{err}
		}
		_, err = s.out.Write(file)
		return err
	})
	return c
}
