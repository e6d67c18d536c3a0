package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Every sum adds up to the time that package timing computed, whatever the configuration.
func TestExplainTiming_SumsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := config.Default()
		r := &f.SplitBrainResolver
		r.ActiveStrategy = rapid.SampledFrom(strategies.Keys()).Draw(t, "strategy")
		r.StableAfter = strictyaml.AutoDuration(wholeSeconds(t, "stable-after", 1, 60))
		r.DownAllWhenUnstable = strictyaml.OnOffDuration{On: rapid.Bool().Draw(t, "unstable"),
			For: wholeSeconds(t, "unstable-for", 0, 20)}
		r.LeaseMajority.AcquireLeaseDelayForMinority = wholeSeconds(t, "delay", 0, 10)
		r.Probe.Neighbours = rapid.IntRange(0, 20).Draw(t, "neighbours")
		r.Probe.Tries = rapid.IntRange(1, 5).Draw(t, "tries")
		r.Probe.Interval = wholeSeconds(t, "interval", 1, 10)
		timeout := wholeSeconds(t, "lease-operation-timeout", 1, 20)
		f.Lease.LeaseOperationTimeout = &timeout
		members := rapid.IntRange(2, 2000).Draw(t, "members")
		profile := rapid.SampledFrom(timing.Profiles()).Draw(t, "profile")
		x := newExplanation(&f, members, profile)
		for _, step := range x.Steps {
			require.NotEmpty(t, step.Sums, step.Name)
			for _, sum := range step.Sums {
				var total time.Duration
				for _, p := range sum.Parts {
					total += duration(t, p.Time)
				}
				require.Equal(t, duration(t, sum.Total), total, "%s, %s: %s", step.Name, sum.Of, sum)
			}
		}
	})
}

func duration(t *rapid.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func wholeSeconds(t *rapid.T, name string, from, to int) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Second
}

// What is said to change a time exists in the configuration, and does change one.
func TestExplainTiming_KeysChangeTheirStep(t *testing.T) {
	const resolver = "split-brain-resolver."
	change := map[string]func(f *config.File){
		resolver + "stable-after": func(f *config.File) { f.SplitBrainResolver.StableAfter += strictyaml.AutoDuration(time.Second) },
		resolver + "down-all-when-unstable": func(f *config.File) {
			f.SplitBrainResolver.DownAllWhenUnstable = strictyaml.OnOffDuration{For: time.Second}
		},
		resolver + "lease-majority.acquire-lease-delay-for-minority": func(f *config.File) {
			f.SplitBrainResolver.LeaseMajority.AcquireLeaseDelayForMinority += time.Second
		},
		"lease.lease-operation-timeout":   func(f *config.File) { f.Lease.LeaseOperationTimeout = new(9 * time.Second) },
		"serf.profile":                    func(f *config.File) { f.Serf.Profile = "wan" },
		resolver + "probe.interval":       func(f *config.File) { f.SplitBrainResolver.Probe.Interval *= 3 },
		resolver + "probe.timeout":        func(f *config.File) { f.SplitBrainResolver.Probe.Timeout /= 2 },
		resolver + "probe.tries":          func(f *config.File) { f.SplitBrainResolver.Probe.Tries += 2 },
		resolver + "probe.neighbours":     func(f *config.File) { f.SplitBrainResolver.Probe.Neighbours = 1 },
		resolver + "lease-majority.watch": func(f *config.File) { f.SplitBrainResolver.LeaseMajority.Watch = false },
	}
	var all map[string]any
	whole := config.Default()
	whole.System = "s"
	require.NoError(t, yaml.Unmarshal(whole.Effective(), &all))
	for _, tc := range []struct {
		probes   int
		strategy string
	}{{5, "lease-majority"}, {0, "lease-majority"}, {5, "keep-majority"}, {0, "keep-majority"}} {
		base := func() *config.File {
			f := config.Default()
			f.SplitBrainResolver.Probe.Neighbours, f.SplitBrainResolver.ActiveStrategy = tc.probes, tc.strategy
			return &f
		}
		for i, s := range newExplanation(base(), 50, "lan").Steps {
			for _, key := range s.Keys {
				require.NotNil(t, change[key], key)
				require.True(t, has(all, key), "%s is no key of the configuration", key)
				f := base()
				change[key](f)
				after := newExplanation(f, 50, f.Serf.Profile)
				if key == resolver+"lease-majority.watch" {
					require.Greater(t, len(after.Warnings), len(newExplanation(base(), 50, "lan").Warnings))
					continue
				}
				require.NotEqual(t, fmt.Sprint(s.Sums, s.Text), fmt.Sprint(after.Steps[i].Sums, after.Steps[i].Text),
					"%s does not change %s", key, s.Name)
			}
		}
	}
}

// has says whether a path of keys leads to something.
func has(values map[string]any, path string) bool {
	for key, value := range values {
		if key == path {
			return true
		}
		if inner, ok := value.(map[string]any); ok && len(path) > len(key) && path[:len(key)+1] == key+
			"." && has(inner, path[len(key)+1:]) {
			return true
		}
	}
	return false
}
