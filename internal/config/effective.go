package config

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// Effective returns the configuration in effect as YAML: defaults and computed values are written out. It reads back to a File
// with the same effect. It holds the secrets of the file; see Redacted.
func (f *File) Effective() []byte {
	e := *f
	e.SplitBrainResolver.ActiveStrategy = strings.ToLower(f.SplitBrainResolver.ActiveStrategy)
	e.SplitBrainResolver.LeaseMajority.LeaseName = f.LeaseName()
	e.Lease.Times = f.Lease.effective("")
	for implementation, own := range map[string]*Times{
		ImplementationKubernetes: &e.Lease.Kubernetes.Times, ImplementationFile: &e.Lease.File.Times,
	} {
		if *own != (Times{}) {
			*own = f.Lease.effective(implementation)
		}
	}
	if !f.Serf.OwnNode() && f.Serf.RPC == "" {
		e.Serf.RPC = defaultRPC
	}
	return marshal(&e)
}

// effective are the times of an implementation, all of them set.
func (l *Lease) effective(implementation string) Times {
	s := l.Settings(implementation)
	timeout := strictyaml.Span(s.HeartbeatTimeout)
	return Times{
		HeartbeatTimeout: &timeout, HeartbeatInterval: &s.HeartbeatInterval, LeaseOperationTimeout: &s.OperationTimeout,
	}
}

func marshal(f *File) []byte {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(f); err != nil {
		panic(fmt.Sprintf("config: a File cannot be written: %v", err)) // only types of this package are in it
	}
	return out.Bytes()
}

// hidden stands for a secret that is set.
const hidden = "(hidden)"

// Redacted returns a copy for people's eyes: secrets that are set read "(hidden)". It does not validate any more.
func (f *File) Redacted() *File {
	r := *f
	for _, secret := range []*string{&r.Serf.RPCAuthKey, &r.Serf.Encrypt} {
		if *secret != "" {
			*secret = hidden
		}
	}
	return &r
}
