package config

import (
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

const implementationKey = "split-brain-resolver.lease-majority.lease-implementation"

// LeaseStore returns the key of the implementation that keeps the resolver's lease, empty where none is needed. It is an error
// where one is needed and none is named: every host would fall back to a place of its own, and each would win there. Named means
// lease-implementation, a block lease.kubernetes, or the account of the pod that this process runs in. KUBECONFIG names
// nothing: the shell of an operator has it and the agent's service has not, or the other way round.
func (f *File) LeaseStore() (string, error) {
	m := &f.SplitBrainResolver.LeaseMajority
	switch {
	case f.DowningProvider != ProviderResolver || !f.SplitBrainResolver.NeedsLease():
		return "", nil
	case f.leaseNamed || f.Lease.Kubernetes != (KubernetesLease{}) || os.Getenv("KUBERNETES_SERVICE_HOST") != "":
		return m.LeaseImplementation, nil
	}
	return "", strictyaml.Problem{Name: f.name, Path: implementationKey, Text: "is not set, and this is no pod: write kubernetes " +
		"(and where the cluster is, as lease.kubernetes.kubeconfig), or file (and lease.file.path) where all members run on one machine"}
}

// place refuses a block that keeps the lease elsewhere than lease-implementation says.
func (c *checker) place(f *File) {
	r := &f.SplitBrainResolver
	if !r.NeedsLease() {
		return
	}
	chosen, from := r.LeaseMajority.LeaseImplementation, ""
	if !f.leaseNamed {
		from = " (the default)"
	}
	for _, block := range []struct {
		implementation string
		set            bool
	}{
		{ImplementationKubernetes, f.Lease.Kubernetes != (KubernetesLease{})}, {ImplementationFile, f.Lease.File != (FileLease{})},
	} {
		if i := block.implementation; block.set && i != chosen && i != f.Singleton.UseLease {
			path := "lease." + i
			if i == ImplementationFile && f.Lease.File.Path != "" {
				path += ".path"
			}
			c.Add(path, "is set, but lease-implementation is %s%s: write lease-implementation: %s, or take this block out", chosen, from, i)
		}
	}
	if chosen == ImplementationFile && f.Lease.File.Path == "" {
		c.Add("lease.file.path", "is empty: the lease-implementation file needs the path of a file that all members share")
	}
}

// LeaseBlock returns a function that fills a struct with yaml tags from the block of a lease implementation, times excepted:
// what lease.Spec.Decode wants. Nil: the implementation has no block.
func (f *File) LeaseBlock(implementation string) func(into any) error {
	var block any
	switch implementation {
	case ImplementationKubernetes:
		b := f.Lease.Kubernetes
		b.Times = Times{}
		block = b
	case ImplementationFile:
		b := f.Lease.File
		b.Times = Times{}
		block = b
	default:
		return nil
	}
	return func(into any) error {
		data, err := yaml.Marshal(block)
		if err != nil {
			return err
		}
		return yaml.Unmarshal(data, into)
	}
}
