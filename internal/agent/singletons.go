package agent

import (
	"context"
	"errors"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// host makes ready what programs are attached to.
func (a *agent) host() *programs.Host {
	return programs.New(programs.Options{Cluster: a.provider, Configure: a.singleton, Waiting: a.noPrograms, Logger: a.log})
}

// noPrograms says why no program can be attached; empty when one can.
func (a *agent) noPrograms() string {
	if what := a.waitingFor(); what != "" {
		return "starting: " + what
	}
	if reason := a.provider.Reason(); reason != "" {
		return "down: " + reason
	}
	return ""
}

// singleton returns the rules of a singleton.
func (a *agent) singleton(name string) (singleton.Config, error) {
	f := a.file
	c := singleton.DefaultConfig()
	c.HandOverRetryInterval, c.NumberOfRetries = f.Singleton.HandOverRetryInterval, f.Singleton.NumberOfRetries
	c.LeaseRetryInterval, c.RemovalMargin = f.Singleton.LeaseRetryInterval, f.Margin()
	if f.Singleton.UseLease == "" {
		if c.RemovalMargin == 0 {
			return c, errors.New("stable-after is 0s: set singleton.removal-margin, or singleton.use-lease")
		}
		return c, nil
	}
	c.UseLease, c.LeaseName = f.Singleton.UseLease, f.SingletonLeaseName(name)
	c.LeaseDecode, c.Lease = f.SingletonLease(name), f.LeaseSettings(f.Singleton.UseLease)
	return c, nil
}

// handOverMargin is what a hand-over may take beyond the time in which a successor is looked for.
const handOverMargin = time.Second

// handOver gives away what runs here, before the member leaves.
func (a *agent) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), a.programs.Patience()+handOverMargin)
	defer cancel()
	a.programs.Leave(ctx)
}
