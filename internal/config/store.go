package config

import (
	"go.yaml.in/yaml/v3"
)

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
