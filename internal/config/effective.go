package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Effective returns the configuration in effect as YAML: defaults and computed values are written out. It
// reads back to a File with the same effect. It holds the secrets of the file; see Redacted.
func (f *File) Effective() []byte {
	e := *f
	e.SplitBrainResolver.ActiveStrategy = strings.ToLower(f.SplitBrainResolver.ActiveStrategy)
	e.SplitBrainResolver.StableAfter = strictyaml.AutoDuration(f.Resolver().StableAfter)
	e.SplitBrainResolver.LeaseMajority.LeaseName = f.LeaseName()
	e.Lease.Times = f.Lease.effective("")
	for _, own := range e.Lease.blocks() {
		if *own.times != (Times{}) {
			*own.times = f.Lease.effective(own.implementation)
		}
	}
	if !f.Serf.OwnNode() {
		e.Serf.RPC = f.Serf.RPCAddress()
	}
	return marshal(&e)
}

// effective are the times of an implementation, all of them set.
func (l *Lease) effective(implementation string) Times {
	s := l.Settings(implementation)
	timeout := strictyaml.Span(s.HeartbeatTimeout)
	return Times{
		HeartbeatTimeout: &timeout, HeartbeatInterval: &s.HeartbeatInterval,
		LeaseOperationTimeout: &s.OperationTimeout,
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

// Redacted returns a copy for people's eyes: secrets that are set read "(hidden)". It does not validate any
// more.
func (f *File) Redacted() *File {
	r := *f
	for _, secret := range []*string{&r.Serf.RPCAuthKey, &r.Serf.Encrypt, &r.Lease.Postgres.URL,
		&r.Lease.MongoDB.URI} {
		if *secret != "" {
			*secret = hidden
		}
	}
	return &r
}

// digestLength is short because the digest travels in a Serf tag; 40 bits tell honest mistakes apart.
const digestLength = 8

// Digest returns 8 characters that are the same for members that decide by the same rules over the same
// lease. It covers what makes two sides decide differently (strategy, its settings, the resolver's times,
// lease and place of the lease), and nothing that may differ from node to node (addresses, hooks, probes, the
// settings of strategies that are not active).
func (f *File) Digest() string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	f.digestRules(line)
	if f.SplitBrainResolver.NeedsLease() {
		f.digestLease(line)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:digestLength]
}

// digestRules writes the keys of sbr.yaml, not the names of Go fields: members of different versions must
// agree.
func (f *File) digestRules(line func(key string, value any)) {
	r, rules := &f.SplitBrainResolver, f.Resolver()
	line("digest", 1) // changes when the meaning of a line does
	line("system", f.System)
	line("downing-provider", f.DowningProvider)
	// The words, not the numbers: these follow from the size of the cluster, and change with it.
	line("stable-after", strictyaml.AutoDuration(rules.StableAfter))
	if rules.DownAllWhenUnstable == sbr.Auto {
		line("down-all-when-unstable", "on")
	} else {
		line("down-all-when-unstable", rules.DownAllWhenUnstable)
	}
	line("down-all-when-indirectly-connected", rules.DownAllWhenIndirectlyConnected)
	line("min-members", rules.MinMembers)
	strategy := strings.ToLower(r.ActiveStrategy)
	line("active-strategy", strategy)
	switch strategy {
	case "static-quorum":
		line("quorum-size", r.StaticQuorum.QuorumSize)
		line("role", r.StaticQuorum.Role)
	case "keep-majority":
		line("role", r.KeepMajority.Role)
	case "keep-oldest":
		line("down-if-alone", r.KeepOldest.DownIfAlone)
		line("role", r.KeepOldest.Role)
	case "keep-referee":
		line("address", r.KeepReferee.Address)
		line("down-all-if-less-than-nodes", r.KeepReferee.DownAllIfLessThanNodes)
	case "lease-majority":
		line("acquire-lease-delay-for-minority", r.LeaseMajority.AcquireLeaseDelayForMinority)
		line("indirectly-connected", r.IndirectlyConnected)
		line("role", r.LeaseMajority.Role)
	}
}

// digestLease covers which lease it is and how it is judged.
func (f *File) digestLease(line func(key string, value any)) {
	m, rules := &f.SplitBrainResolver.LeaseMajority, f.Resolver()
	times := f.Lease.Settings(m.LeaseImplementation)
	line("lease-implementation", m.LeaseImplementation)
	line("lease-name", f.LeaseName())
	switch m.LeaseImplementation {
	case ImplementationKubernetes:
		line("namespace", f.Lease.Kubernetes.Namespace)
		if api := f.Lease.Kubernetes.API; api != "" && api != "native" {
			line("api", api)
		}
	case ImplementationFile:
		line("path", f.Lease.File.Path)
	case ImplementationEtcd: // by which addresses and as whom a member gets there is its own affair
		line("prefix", cmp.Or(f.Lease.Etcd.Prefix, defaultPrefix))
	case ImplementationPostgres:
		line("table", cmp.Or(f.Lease.Postgres.Table, defaultTable))
	case ImplementationMongoDB:
		line("database", f.Lease.MongoDB.Database)
		line("collection", cmp.Or(f.Lease.MongoDB.Collection, defaultCollection))
	}
	line("heartbeat-timeout", times.HeartbeatTimeout)
	line("lease-operation-timeout", times.OperationTimeout)
	line("release-after", rules.ReleaseAfter)
	line("when-lease-unknown", rules.WhenLeaseUnknown)
	line("suspend-timeout", rules.SuspendTimeout)
}
