package config

import (
	"errors"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Validate reports every problem at once, each with its key path. The error is strictyaml.Problems.
func (f *File) Validate() error { return f.problems().Err() }

// problems are those of the whole file. What only one strategy or one lease needs is checked only where it is selected.
func (f *File) problems() strictyaml.Problems {
	var c checker
	c.system(f.System)
	c.oneOf("downing-provider", f.DowningProvider, []string{ProviderResolver, ProviderNone})
	c.resolver("split-brain-resolver", &f.SplitBrainResolver)
	c.lease("lease", &f.Lease)
	c.place(f)
	c.serf(&f.Serf)
	c.http(&f.HTTP)
	c.hooks(&f.Hooks)
	c.singleton(f)
	if len(c.Problems) == 0 {
		c.lines("split-brain-resolver", f.Resolver().Validate()) // nothing is left for it to find; the resolver has the last word
	}
	return c.Problems
}

// Problems reports everything that is wrong with the block at path.
func (r *SplitBrainResolver) Problems(path string) strictyaml.Problems {
	var c checker
	c.resolver(path, r)
	return c.Problems
}

// Problems reports everything that is wrong with the block at path.
func (l *Lease) Problems(path string) strictyaml.Problems {
	var c checker
	c.lease(path, l)
	return c.Problems
}

// checker collects problems.
type checker struct {
	strictyaml.Problems
}

func (c *checker) has(path string) bool {
	return slices.ContainsFunc(c.Problems, func(p strictyaml.Problem) bool { return p.Path == path })
}

// lines takes over an error whose lines read "key is …", with the key below path. What is already reported is not repeated.
func (c *checker) lines(path string, err error) {
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		key, text, _ := strings.Cut(line, " ")
		if at := path + "." + key; !c.has(at) {
			c.Add(at, "%s", text)
		}
	}
}

func (c *checker) system(name string) {
	visible := func(r rune) bool { return unicode.IsPrint(r) && r != ' ' }
	switch {
	case name == "":
		c.Add("system", "is not set: it must name the cluster; the lease is named after it")
	case strings.ContainsFunc(name, func(r rune) bool { return !visible(r) }):
		c.Add("system", "is %q: it must not contain spaces or control characters", name)
	case !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }):
		c.Add("system", "is %q: it must contain a letter or a digit", name)
	}
}

func (c *checker) resolver(path string, r *SplitBrainResolver) {
	m := &r.LeaseMajority
	c.notNegative(path+".stable-after", r.StableAfter)
	c.notNegative(path+".down-all-when-unstable", r.DownAllWhenUnstable.For)
	if f := r.DownAllWhenIndirectlyConnected; !(f >= 0 && f <= 1) { // also when it is not a number
		c.Add(path+".down-all-when-indirectly-connected", "is %v: it must be on, off or a number from 0 to 1", float64(f))
	}
	if r.MinMembers < 1 {
		c.Add(path+".min-members", "is %d: it must be at least 1", r.MinMembers)
	}
	c.notNegative(path+".settle-after", r.SettleAfter)
	c.probe(path+".probe", r)
	c.oneOf(path+".lease-majority.lease-implementation", m.LeaseImplementation, []string{ImplementationKubernetes, ImplementationFile})
	c.notNegative(path+".lease-majority.acquire-lease-delay-for-minority", m.AcquireLeaseDelayForMinority)
	c.notNegative(path+".lease-majority.release-after", m.ReleaseAfter)
	c.oneOf(path+".lease-majority.when-lease-unknown", m.WhenLeaseUnknown, []string{unknownDown, unknownSuspend})
	c.positive(path+".lease-majority.suspend-timeout", m.SuspendTimeout)
	c.strategy(path, r)
}

func (c *checker) strategy(path string, r *SplitBrainResolver) {
	switch _, err := r.Strategy(); {
	case errors.Is(err, strategies.ErrUnknown):
		c.oneOf(path+".active-strategy", strings.ToLower(r.ActiveStrategy), strategies.Keys())
	default:
		c.lines(path, err)
	}
}

func (c *checker) probe(path string, r *SplitBrainResolver) {
	p := r.Probe
	c.notNegative(path+".interval", p.Interval)
	c.notNegative(path+".timeout", p.Timeout)
	if p.Tries < 0 {
		c.Add(path+".tries", "is %d: it must not be negative", p.Tries)
	}
	c.lines(strings.TrimSuffix(path, ".probe"), r.Reachability().Validate())
}

// dnsLabel is what Kubernetes takes for the name of a namespace.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *checker) lease(path string, l *Lease) {
	c.times(path, &l.Times, l.Settings(""))
	if ns := l.Kubernetes.Namespace; ns != "" && !dnsLabel.MatchString(ns) {
		c.Add(path+".kubernetes.namespace", "is %q: it must be at most 63 lower case letters, digits and '-'", ns)
	}
	if api := l.Kubernetes.API; api != "" {
		c.oneOf(path+".kubernetes.api", api, []string{"native", "akka", "pekko"})
	}
	for _, own := range []struct {
		implementation string
		times          *Times
	}{{ImplementationKubernetes, &l.Kubernetes.Times}, {ImplementationFile, &l.File.Times}} {
		if *own.times != (Times{}) {
			c.times(path+"."+own.implementation, own.times, l.Settings(own.implementation))
		}
	}
}

// times checks what was written, then what it amounts to together with the defaults.
func (c *checker) times(path string, written *Times, s lease.Settings) {
	before := len(c.Problems)
	for _, t := range []struct {
		key   string
		value *time.Duration
	}{
		{"heartbeat-timeout", (*time.Duration)(written.HeartbeatTimeout)},
		{"heartbeat-interval", written.HeartbeatInterval},
		{"lease-operation-timeout", written.LeaseOperationTimeout},
	} {
		if t.value != nil && *t.value != lease.Infinite {
			c.positive(path+"."+t.key, *t.value)
		}
	}
	if len(c.Problems) == before {
		c.lines(path, s.Validate())
	}
}

// address checks host:port; empty is for the caller to judge.
func (c *checker) address(path, address string) {
	if address == "" {
		return
	}
	_, port, err := net.SplitHostPort(address)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
		c.Add(path, "is %q: it must be host:port", address)
	}
}

func (c *checker) oneOf(path, value string, known []string) {
	if err := strictyaml.OneOf(value, known); err != nil {
		c.Add(path, "%v", err)
	}
}

func (c *checker) notNegative(path string, d time.Duration) {
	if d < 0 {
		c.Add(path, "is %v: it must not be negative", d)
	}
	c.bounded(path, d)
}

func (c *checker) positive(path string, d time.Duration) {
	if d <= 0 {
		c.Add(path, "is %v: it must be more than 0s", d)
	}
	c.bounded(path, d)
}

func (c *checker) bounded(path string, d time.Duration) {
	if d > maxDuration {
		c.Add(path, "is %v: it must be at most %v", d, maxDuration)
	}
}
