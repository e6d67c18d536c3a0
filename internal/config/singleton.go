package config

import (
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// Singleton are the rules of the singletons that `sbr agent` runs for `sbr run`. All members of a system must use the same.
type Singleton struct {
	// UseLease is where each singleton has a lease of its own: a key of the block lease. Empty: nowhere.
	UseLease           string        `yaml:"use-lease"`
	LeaseRetryInterval time.Duration `yaml:"lease-retry-interval"`
	// HandOverRetryInterval is the pause between two tries to ask the others.
	HandOverRetryInterval time.Duration `yaml:"hand-over-retry-interval"`
	NumberOfRetries       int           `yaml:"number-of-retries"`
	// RemovalMargin is how long after the removal of a member that may have run it nothing starts. Off: stable-after.
	RemovalMargin strictyaml.OnOffDuration `yaml:"removal-margin"`
}

func defaultSingleton() Singleton {
	d := handover.DefaultConfig()
	return Singleton{LeaseRetryInterval: d.LeaseRetryInterval, HandOverRetryInterval: d.HandOverRetryInterval, NumberOfRetries: d.NumberOfRetries}
}

// Margin is the removal margin in effect.
func (f *File) Margin() time.Duration {
	if m := f.Singleton.RemovalMargin.For; m > 0 {
		return m
	}
	return f.SplitBrainResolver.StableAfter
}

// SingletonLeaseName is the name of the lease of the singleton called name.
func (f *File) SingletonLeaseName(name string) string { return f.System + "-singleton-" + name }

// SingletonLease returns what LeaseBlock does for the lease of the singleton called name: where leases are files it is one beside lease.file.path.
func (f *File) SingletonLease(name string) func(into any) error {
	own := *f
	own.Lease.File.Path += ".singleton-" + name
	return own.LeaseBlock(f.Singleton.UseLease)
}

func (c *checker) singleton(f *File) {
	s := &f.Singleton
	if s.UseLease != "" {
		c.oneOf("singleton.use-lease", s.UseLease, []string{ImplementationKubernetes, ImplementationFile})
	}
	if s.UseLease == ImplementationFile && f.Lease.File.Path == "" {
		c.Add("lease.file.path", "is empty: singleton.use-lease: file needs the path of a file that all members share; each singleton has one beside it")
	}
	c.positive("singleton.lease-retry-interval", s.LeaseRetryInterval)
	c.positive("singleton.hand-over-retry-interval", s.HandOverRetryInterval)
	if s.NumberOfRetries < 1 {
		c.Add("singleton.number-of-retries", "is %d: it must be at least 1", s.NumberOfRetries)
	}
	if s.RemovalMargin.On {
		c.Add("singleton.removal-margin", "is on: it must be off (stable-after is taken) or a duration such as 30s")
	}
	c.bounded("singleton.removal-margin", s.RemovalMargin.For)
}
