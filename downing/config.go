package downing

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// ExitDowned is the exit status of a process whose member was downed.
const ExitDowned = 70

// Config says how a member is protected. Start from DefaultConfig and set System and Store.
// Apart from the fields that say otherwise, all members of a system must use the same values.
type Config struct {
	// System names the cluster. Required; it is part of the lease's name.
	System string
	// Provider is the key of the downing provider: "split-brain-resolver" (default) or "none".
	Provider string
	// Strategy is the key of the active strategy. Default "lease-majority".
	Strategy string
	// Strategies are the settings of the strategies; only those of the active one count.
	Strategies strategies.Settings
	// Resolver are the resolver's rules.
	Resolver sbr.Config
	// Probe are the settings of this member's own probes of its neighbours.
	Probe reachability.Settings
	// Lease are the times of the lease.
	Lease lease.Settings
	// LeaseName is the name of the lease, for logs and status. Empty: System + "-sbr".
	LeaseName string

	// ConfigDigest is what members compare to see that they decide by the same rules. Empty: computed from
	// the fields above. LoadConfig sets it to what `sbr config check` prints.
	ConfigDigest string

	// Store keeps the lease. Strategies that need a lease (lease-majority) require it, or
	// LeaseImplementation. Each member has its own. If it has a method LastAnswer() time.Time, the metrics
	// ask it when the store was last reached, be it by its own watching.
	Store lease.Store
	// LeaseImplementation is the key of a registered implementation (see lease.Register) that Prepare opens
	// where Store is nil: "kubernetes" or "file" once package lease/kubernetes or lease/file is imported, or
	// one of your own. Stop closes what it opened.
	LeaseImplementation string
	// LeaseDecode fills the implementation's own configuration (see lease.Spec). Nil: its defaults.
	// LoadConfig sets both.
	LeaseDecode func(into any) error
	// PollInterval is how often the membership is read, events or not. Default 500 ms.
	PollInterval time.Duration
	// PauseAfter is how long this process may be paused before it has to check its standing. Default 2 s.
	PauseAfter time.Duration
	// TellFor bounds how long a decision is sent to a member that does not answer. Default 10 s.
	TellFor time.Duration
	// Grace bounds everything that is still done once this member is downed: callbacks, telling its side,
	// leaving. Default 15 s.
	Grace time.Duration
	// Exit ends the process after Grace with status ExitDowned. Nil: os.Exit. Set it to a function that does
	// nothing where the embedder ends the process itself.
	Exit func(status int)

	// AgentTimeout is how long a Serf agent in another process (Provider.Beside) may be silent or gone before
	// this member, which sees nothing meanwhile, goes down. Keep it below the time that the others need to
	// decide: failure detection and stable-after. Default 15 s.
	AgentTimeout time.Duration
	// Gossip are the settings of that agent's failure detector, for the warnings about unsafe times. Nil:
	// Serf's LAN settings.
	Gossip *memberlist.Config
	// Memory keeps what must outlive this process (see NewMemory); it stays the caller's. Nil: nothing does.
	// Then a member that restarts in the middle of a partition forgets its unreachable members, members that
	// start in a network that is cut do not miss each other unless a verdict names them, no member can tell
	// that the earlier incarnation has ended, and beside a Serf agent an incarnation that went down may be
	// gone on with once.
	Memory *Memory
	// Bootstrap is the token of the last verdict. It says that an operator knows that all members which that
	// verdict left have ended for good. This member looks for them all the same. If it finds none it begins a
	// new cluster with the members that are here, by a verdict of its own: of several such members one wins,
	// and an old member that still runs is downed. Under any other verdict Bootstrap has no effect, so that a
	// configuration that keeps it does no harm later. Zero: not set.
	Bootstrap uint64
	// KeepTags leaves the tags in such an agent when Stop is called: the process that is started next goes on
	// as the same incarnation.
	KeepTags bool

	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
	// Meter takes the metrics. Nil: OpenTelemetry's global provider.
	Meter metric.MeterProvider
	// Tracer takes a trace of each partition, and of each run of a singleton or of a shard. Nil:
	// OpenTelemetry's global provider. It is flushed before a member that is down exits.
	Tracer trace.TracerProvider
	// Observe, if set, is called with every occurrence, in order, on the resolver's goroutine: it must not
	// block. A call that blocks for 20 s is taken for a failed resolver, and downs the member.
	Observe func(Occurrence)

	// Pause, if set, is called before each step and may block, for as long as the member shall seem to be
	// stopped. It is for tests and demonstrations of pauses.
	Pause func()
}

// DefaultConfig returns the reference's defaults.
func DefaultConfig() Config {
	return Config{
		Provider:     SplitBrainResolver,
		Strategy:     "lease-majority",
		Strategies:   strategies.DefaultSettings(),
		Resolver:     sbr.DefaultConfig(),
		Probe:        reachability.DefaultSettings(),
		Lease:        lease.DefaultSettings(),
		PollInterval: 500 * time.Millisecond,
		PauseAfter:   2 * time.Second,
		TellFor:      wire.TellFor,
		Grace:        wire.Grace,
		AgentTimeout: 15 * time.Second,
	}
}

// Validate reports every problem at once, one line each.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.System != "", "system is empty: name the cluster")
	check(c.PollInterval > 0, "PollInterval is %v: it must be more than 0s", c.PollInterval)
	check(c.PauseAfter > 0, "PauseAfter is %v: it must be more than 0s", c.PauseAfter)
	check(c.TellFor > 0, "TellFor is %v: it must be more than 0s", c.TellFor)
	check(c.Grace > 0, "Grace is %v: it must be more than 0s", c.Grace)
	check(c.AgentTimeout > 0, "AgentTimeout is %v: it must be more than 0s", c.AgentTimeout)
	rules := c.rules(nil)
	errs = append(errs, rules.Validate(), c.Probe.Validate(), c.Lease.Validate())
	s, err := strategies.New(c.Strategy, c.Strategies)
	errs = append(errs, err)
	if err == nil && sbr.NeedsLease(s) {
		errs = append(errs, c.checkStore())
	}
	return errors.Join(errs...)
}

func (c *Config) checkStore() error {
	if c.Store != nil {
		return nil
	}
	if c.LeaseImplementation == "" {
		return fmt.Errorf("strategy %s needs a lease: set Store or LeaseImplementation", c.Strategy)
	}
	if known := lease.Implementations(); !slices.Contains(known, c.LeaseImplementation) {
		return fmt.Errorf("%w %q (known: %s): import its package (for example _ \"github.com/serf-sbr/serf-sbr/lease/%s\"), or set Store",
			lease.ErrUnknownImplementation, c.LeaseImplementation, strings.Join(append(known, "none"), ", "),
			c.LeaseImplementation)
	}
	return nil
}

func (c *Config) leaseName() string { return cmp.Or(c.LeaseName, c.System+"-sbr") }

func (c *Config) logger() *slog.Logger { return cmp.Or(c.Logger, slog.Default()) }

// LoadConfig reads an sbr.yaml. It is strict: unknown keys and impossible values are errors that name the key
// and its line, all of them at once. The lease is opened by the implementation that the file names: import
// its package (lease/kubernetes, lease/file), or set Store.
func LoadConfig(path string) (Config, error) {
	f, err := config.Load(path)
	if err != nil {
		return Config{}, err
	}
	return fromFile(f), nil
}

// ParseConfig is LoadConfig for a file that was read already; name is what errors call it.
func ParseConfig(name string, data []byte) (Config, error) {
	f, err := config.Parse(name, data)
	if err != nil {
		return Config{}, err
	}
	return fromFile(f), nil
}

func fromFile(f *config.File) Config {
	r := &f.SplitBrainResolver
	c := DefaultConfig()
	c.System, c.Provider = f.System, f.DowningProvider
	c.Strategy, c.Strategies = r.ActiveStrategy, r.Settings()
	c.Resolver = f.Resolver()
	c.Probe = r.Probe
	c.Lease = f.Lease.Settings(r.LeaseMajority.LeaseImplementation)
	c.LeaseName = f.LeaseName()
	c.LeaseImplementation = r.LeaseMajority.LeaseImplementation
	c.LeaseDecode = f.LeaseBlock(c.LeaseImplementation)
	c.ConfigDigest = f.Digest()
	return c
}

// Digest is a short digest of the settings that decide: members with different digests would decide by
// different rules. It travels in the tag sbr_cfg.
func (c *Config) Digest() string {
	if c.ConfigDigest != "" {
		return c.ConfigDigest
	}
	h := sha256.New()
	r := c.Resolver
	fmt.Fprintf(h, "%s\n%s\n%+v\n", c.System, strings.ToLower(c.Strategy), c.Strategies)
	// Auto is digested as the word that it is: the number follows from the size of the cluster, and changes
	// with it.
	fmt.Fprintln(h, r.StableAfter, r.DownAllWhenUnstable, r.DownAllWhenIndirectlyConnected, r.ReleaseAfter,
		r.WhenLeaseUnknown, c.leaseName(), c.Lease.HeartbeatTimeout)
	return short(h.Sum(nil))
}

// shortHash makes eight characters of a text, for a tag.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return short(sum[:])
}

func short(sum []byte) string { return strings.ToLower(base32.StdEncoding.EncodeToString(sum)[:8]) }

// Version is the version of this module as it was built.
func Version() string {
	const module = "github.com/serf-sbr/serf-sbr"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "(devel)"
}

// gossipOf reads what detection times follow from out of the node's own settings.
func gossipOf(c *memberlist.Config) timing.Gossip {
	if c == nil {
		return timing.LAN()
	}
	return timing.Gossip{
		ProbeInterval: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout,
		SuspicionMult: c.SuspicionMult, SuspicionMaxTimeoutMult: c.SuspicionMaxTimeoutMult,
		AwarenessMaxMultiplier: c.AwarenessMaxMultiplier, IndirectChecks: c.IndirectChecks,
		GossipInterval: c.GossipInterval, GossipNodes: c.GossipNodes,
	}
}

// Timing is what the times of a cluster of so many members follow from, for package timing. nil stands for
// Serf's LAN settings.
func (c *Config) Timing(members int, gossip *memberlist.Config) timing.Input {
	s, err := strategies.New(c.Strategy, c.Strategies)
	rules := c.rules(gossip)
	return timing.Input{
		Members: members, Gossip: gossipOf(gossip),
		Probes:      c.Probe,
		StableAfter: rules.StableIn(members), Auto: rules.StableAfter == sbr.Auto,
		Unstable:      rules.UnstableIn(members),
		Lease:         err == nil && sbr.NeedsLease(s),
		MinorityDelay: c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority,
		LeaseTimeout:  c.Lease.OperationTimeout, LeaseDeadline: c.Resolver.LeaseDeadline,
		LeaseRetry:       c.Resolver.LeaseRetry,
		HeartbeatTimeout: c.Lease.HeartbeatTimeout, HeartbeatInterval: c.Lease.Interval(),
		Watch: c.Resolver.Watched,
	}
}

// rules are those of the resolver, with what stable-after: auto means over these settings of Serf's failure
// detector. nil stands for what StableFor says, or for Serf's LAN settings. Without a lease auto is the
// default duration: nothing would arbitrate between members that count with different numbers.
func (c *Config) rules(gossip *memberlist.Config) sbr.Config {
	r := c.Resolver
	s, err := strategies.New(c.Strategy, c.Strategies)
	switch {
	case r.StableAfter != sbr.Auto:
	case err == nil && !sbr.NeedsLease(s):
		r.StableAfter = sbr.DefaultConfig().StableAfter
	case r.StableFor == nil || gossip != nil:
		r.StableFor = timing.StableFor(gossipOf(gossip), c.Probe)
	}
	return r
}

// warnOfTiming logs the settings that are unsafe for a cluster of this size, once the size is known.
func (e *engine) warnOfTiming() {
	in := e.cfg.Timing(len(e.resolver.Snapshot().Members), e.gossip)
	for _, w := range timing.Compute(in).Warnings {
		e.log.Warn("sbr: unsafe timing: "+w.String(), "members", in.Members)
	}
}
