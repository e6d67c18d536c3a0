package config

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Validate reports every problem at once, each with its key path. The error is strictyaml.Problems.
func (f *File) Validate() error { return f.problems().Err() }

// problems are those of the whole file. What only one strategy or one lease needs is checked only where it is
// selected.
func (f *File) problems() strictyaml.Problems {
	var c checker
	c.system(f.System)
	c.OneOf("downing-provider", f.DowningProvider, []string{ProviderResolver, ProviderNone})
	c.resolver("split-brain-resolver", &f.SplitBrainResolver)
	c.lease("lease", &f.Lease)
	c.place(f)
	c.serf(&f.Serf)
	c.tags(f)
	c.http(&f.HTTP)
	c.hooks(&f.Hooks)
	c.singleton(f)
	if len(c.Problems) == 0 {
		// nothing is left for it to find; the resolver has the last word
		c.lines("split-brain-resolver", f.Resolver().Validate())
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

// lines takes over an error whose lines read "key is …", with the key below path. What is already reported is
// not repeated.
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
	if r.StableAfter != strictyaml.Auto {
		c.notNegative(path+".stable-after", time.Duration(r.StableAfter))
	}
	c.notNegative(path+".down-all-when-unstable", r.DownAllWhenUnstable.For)
	if f := r.DownAllWhenIndirectlyConnected; !(f >= 0 && f <= 1) { // also when it is not a number
		c.Add(path+".down-all-when-indirectly-connected", "is %v: it must be on, off or a number from 0 to 1",
			float64(f))
	}
	c.OneOf(path+".indirectly-connected", string(r.IndirectlyConnected),
		[]string{string(strategies.KeepLargestGroup), string(strategies.DownIndirectlyConnected)})
	if r.MinMembers < 1 {
		c.Add(path+".min-members", "is %d: it must be at least 1", r.MinMembers)
	}
	c.notNegative(path+".settle-after", r.SettleAfter)
	c.probe(path+".probe", r)
	c.OneOf(path+".lease-majority.lease-implementation", m.LeaseImplementation, Implementations())
	c.notNegative(path+".lease-majority.acquire-lease-delay-for-minority", m.AcquireLeaseDelayForMinority)
	c.notNegative(path+".lease-majority.release-after", m.ReleaseAfter)
	c.OneOf(path+".lease-majority.when-lease-unknown", m.WhenLeaseUnknown, []string{unknownDown, unknownSuspend})
	c.positive(path+".lease-majority.suspend-timeout", m.SuspendTimeout)
	c.strategy(path, r)
}

func (c *checker) strategy(path string, r *SplitBrainResolver) {
	switch _, err := r.Strategy(); {
	case errors.Is(err, strategies.ErrUnknown):
		c.OneOf(path+".active-strategy", strings.ToLower(r.ActiveStrategy), strategies.Keys())
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
	c.lines(strings.TrimSuffix(path, ".probe"), r.Probe.Validate())
}

// dnsLabel is what Kubernetes takes for the name of a namespace.
var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *checker) lease(path string, l *Lease) {
	c.times(path, &l.Times, l.Settings(""))
	if ns := l.Kubernetes.Namespace; ns != "" && !dnsLabel.MatchString(ns) {
		c.Add(path+".kubernetes.namespace", "is %q: it must be at most 63 lower case letters, digits and '-'", ns)
	}
	if api := l.Kubernetes.API; api != "" {
		c.OneOf(path+".kubernetes.api", api, []string{"native", "akka", "pekko"})
	}
	if t := l.Etcd.TLS; (t.Cert == "") != (t.Key == "") {
		c.Add(path+".etcd.tls", "has one of cert and key: give both, or none")
	}
	c.etcdSchemes(path+".etcd", &l.Etcd)
	if l.Etcd.PasswordFile != "" && l.Etcd.Username == "" {
		c.Add(path+".etcd.password-file", "is set, but username is not")
	}
	if l.Postgres.URL != "" && l.Postgres.URLFile != "" {
		c.Add(path+".postgres.url", "is set, and url-file as well: leave one out")
	}
	if l.MongoDB.URI != "" && l.MongoDB.URIFile != "" {
		c.Add(path+".mongodb.uri", "is set, and uri-file as well: leave one out")
	}
	for _, own := range l.blocks() {
		if *own.times != (Times{}) {
			c.times(path+"."+own.implementation, own.times, l.Settings(own.implementation))
		}
	}
}

// etcdSchemes refuses endpoints that want different credentials: the client has those of the first one for all.
// The store refuses the same where a program opens it without such a file.
func (c *checker) etcdSchemes(path string, l *etcdLease) {
	is := func(name string) bool {
		return slices.ContainsFunc(l.Endpoints, func(e string) bool {
			return strings.HasPrefix(strings.ToLower(e), name+"://")
		})
	}
	switch plain := is("http"); {
	case plain && is("https"):
		c.Add(path+".endpoints", "mixes http:// and https://: the first one would decide for all")
	case plain && l.TLS != (etcdLease{}.TLS):
		c.Add(path+".tls", "is set, and an endpoint is http://, which uses none: write https://")
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
	switch n, perr := strconv.Atoi(port); {
	case err != nil || perr != nil:
		c.Add(path, "is %q: it must be host:port", address)
	case n < 0 || n > 65535:
		c.Add(path, "is %q: a port is a number from 0 to 65535", address)
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

// place refuses a block that keeps the lease elsewhere than lease-implementation says.
func (c *checker) place(f *File) {
	r := &f.SplitBrainResolver
	uses := func(store string) bool {
		return store == f.Singleton.UseLease || r.NeedsLease() && store == r.LeaseMajority.LeaseImplementation
	}
	if uses(ImplementationEtcd) && len(f.Lease.Etcd.Endpoints) == 0 {
		c.Add("lease.etcd.endpoints", "is empty: name the members of the etcd cluster")
	}
	if uses(ImplementationMongoDB) && f.Lease.MongoDB.Database == "" {
		c.Add("lease.mongodb.database", "is empty: name the database")
	}
	chosen, from := r.LeaseMajority.LeaseImplementation, ""
	if !f.leaseNamed {
		from = " (the default)"
	}
	for _, block := range f.Lease.blocks() {
		if i := block.implementation; block.isSet() && i != chosen && i != f.Singleton.UseLease {
			path := "lease." + i
			if i == ImplementationFile && f.Lease.File.Path != "" {
				path += ".path"
			}
			c.Add(path, "is set, but lease-implementation is %s%s: write lease-implementation: %s, or take this block out", chosen, from, i)
		}
	}
	if r.NeedsLease() && chosen == ImplementationFile && f.Lease.File.Path == "" {
		c.Add("lease.file.path",
			"is empty: the lease-implementation file needs the path of a file that all members share")
	}
}

func (c *checker) singleton(f *File) {
	s := &f.Singleton
	if s.UseLease != "" {
		c.OneOf("singleton.use-lease", s.UseLease, Implementations())
	}
	if s.UseLease == ImplementationFile && f.Lease.File.Path == "" {
		c.Add("lease.file.path", "is empty: singleton.use-lease: file needs the path of a file that all members share; each singleton has one beside it")
	}
	c.positive("singleton.lease-retry-interval", s.LeaseRetryInterval)
	c.positive("singleton.hand-over-retry-interval", s.HandOverRetryInterval)
	if d := s.HandOverRetryInterval; d > slot.MaxRetryInterval {
		c.Add("singleton.hand-over-retry-interval", "is %v: it must be at most %v", d, slot.MaxRetryInterval)
	}
	if s.NumberOfRetries < 1 {
		c.Add("singleton.number-of-retries", "is %d: it must be at least 1", s.NumberOfRetries)
	}
	if s.RemovalMargin.On {
		c.Add("singleton.removal-margin", "is on: it must be off (stable-after is taken) or a duration such as 30s")
	}
	c.bounded("singleton.removal-margin", s.RemovalMargin.For)
}

func (c *checker) serf(s *Serf) {
	c.OneOf("serf.profile", s.Profile, timing.Profiles())
	c.address("serf.rpc", s.RPC)
	c.address("serf.bind", s.Bind)
	host, _, _ := net.SplitHostPort(s.Bind)
	if net.ParseIP(host).Equal(net.IPv6unspecified) && s.Advertise == "" {
		c.Add("serf.bind", "is %q: others would be told the address [::]: set serf.advertise as well, or bind 0.0.0.0 or an address of this machine", s.Bind)
	}
	for i, a := range s.Join {
		if a == "" {
			c.Add("serf.join["+strconv.Itoa(i)+"]", "is empty: it must be host:port")
		}
		c.address("serf.join["+strconv.Itoa(i)+"]", a)
	}
	if s.RPC != "" && s.OwnNode() {
		c.Add("serf.rpc", "is set together with node, bind, encrypt or tags: the agent runs either beside a stock agent (rpc) or as a node of its own")
	}
	if usual := Default().Serf; s.RPC == "" && s.OwnNode() {
		for _, key := range []struct {
			path string
			set  bool
		}{
			{"serf.rpc-auth-key", s.RPCAuthKey != ""}, {"serf.rpc-timeout", s.RPCTimeout != usual.RPCTimeout},
			{"serf.probe", s.Probe != "" && s.Probe != usual.Probe},
		} {
			if key.set {
				c.Add(key.path, "is for a stock agent, and this agent is a node of its own: set serf.rpc as well, or take node, join, tags and the like out")
			}
		}
	}
	c.positive("serf.rpc-timeout", s.RPCTimeout)
	if s.Probe == "" && !s.OwnNode() {
		c.Add("serf.probe", "is empty: it must be the UDP address at which this agent answers the others' probes")
	}
	c.address("serf.probe", s.Probe)
	c.host("serf.advertise", s.Advertise)
	if s.Encrypt != "" && s.KeyringFile != "" {
		c.Add("serf.keyring-file", "is set together with encrypt: the key belongs into the file then")
	}
	if s.Rejoin && s.Snapshot == "" {
		c.Add("serf.rejoin", "is on without snapshot: there is nothing to rejoin from")
	}
	if key, err := base64.StdEncoding.DecodeString(s.Encrypt); err != nil ||
		!slices.Contains([]int{0, 16, 24, 32}, len(key)) {
		// the value is a secret: not shown
		c.Add("serf.encrypt", "is not a key: it must be 16, 24 or 32 bytes in base64")
	}
}

const (
	tagPrefix = "sbr_"
	// ownTags is how many tags the resolver has at most, and ownTagBytes what they take: see package downing.
	ownTags, ownTagBytes = 8, 158
	maxTagBytes          = 512 // memberlist's
)

// tags checks what Serf would refuse, and what the resolver would replace.
func (c *checker) tags(f *File) {
	tags, bytes, own := len(f.Serf.Tags), 2, 0
	if f.DowningProvider != ProviderNone {
		tags, own = tags+ownTags, ownTagBytes
	}
	if tags > 15 { // MessagePack needs more for the number; Serf writes a byte in front
		bytes += 2
	}
	for _, key := range slices.Sorted(maps.Keys(f.Serf.Tags)) {
		if strings.HasPrefix(key, tagPrefix) {
			c.Add("serf.tags", "has %q: a name that begins with %s is for those of the resolver", key, tagPrefix)
		}
		for _, text := range []string{key, f.Serf.Tags[key]} {
			if bytes += 1 + len(text); len(text) > 31 {
				bytes += 2
			}
		}
	}
	if bytes += own; bytes > maxTagBytes {
		c.Add("serf.tags", "take %d bytes, up to %d of them for those of the resolver, and Serf allows %d: make them shorter",
			bytes, own, maxTagBytes)
	}
}

// host checks host or host:port; empty is fine.
func (c *checker) host(path, address string) {
	if _, _, err := net.SplitHostPort(address); err == nil {
		c.address(path, address)
	} else if address != "" && net.ParseIP(address) == nil && strings.ContainsAny(address, ": \t") {
		c.Add(path, "is %q: it must be host or host:port", address)
	}
}

func (c *checker) http(h *HTTP) {
	c.address("http.listen", h.Listen)
	if (h.TLSCertFile == "") != (h.TLSKeyFile == "") {
		c.Add("http.tls-cert-file", "and tls-key-file belong together: set both, or none")
	}
}

func (c *checker) hooks(h *Hooks) {
	c.hook("hooks.on-suspend", h.OnSuspend)
	c.hook("hooks.on-resume", h.OnResume)
	c.hook("hooks.on-down", h.OnDown)
	c.positive("hooks.timeout", h.Timeout)
	c.positive("hooks.grace", h.Grace)
	if h.Timeout >= h.Grace && h.Grace > 0 {
		c.Add("hooks.grace", "is %v: it must be more than hooks.timeout (%v), or a slow on-down is cut short by the end of the process", h.Grace, h.Timeout)
	}
	c.OneOf("hooks.signal", h.Signal, Signals())
}

func (c *checker) hook(path string, command []string) {
	if len(command) > 0 && strings.TrimSpace(command[0]) == "" {
		c.Add(path+"[0]", "is empty: it must be the command to run")
	}
}

// Loopback reports whether only this machine reaches the page.
func (h *HTTP) Loopback() bool {
	host, _, err := net.SplitHostPort(h.Listen)
	return err != nil || host == "localhost" || net.ParseIP(host).IsLoopback() // empty: there is no page
}

// Exposes warns of what a page that others reach gives away.
func (h *HTTP) Exposes() (ws []timing.Warning) {
	warn := warnings(&ws)
	warn(h.TokenFile == "", "http.listen", "everybody who reaches this address sees the members, the lease and "+
		"the configuration: set http.token-file, or listen on 127.0.0.1")
	warn(h.TLSCertFile == "", "http.listen",
		"what is served here, tokens included, crosses the network in clear "+
			"text: set http.tls-cert-file and http.tls-key-file, or listen on 127.0.0.1")
	return ws
}

// Warnings names settings that are allowed but cannot work as they are in a cluster of so many members; 0: it
// is not known how many. Those that follow from times are not among them: see Times.
func (f *File) Warnings(members int) (ws []timing.Warning) {
	r, strategy := &f.SplitBrainResolver, strings.ToLower(f.SplitBrainResolver.ActiveStrategy)
	warn := warnings(&ws)
	warn(f.DowningProvider == ProviderNone, "downing-provider", "none: nobody is ever downed")
	if r.NeedsLease() {
		f.leaseWarnings(warn)
	} else {
		warn(true, "active-strategy", "%s has no lease: %s; lease-majority keeps one side, whatever they see",
			strategy, leaseless[strategy])
	}
	warn(f.Singleton.UseLease == ImplementationFile &&
		!(r.NeedsLease() && r.LeaseMajority.LeaseImplementation == ImplementationFile),
		"singleton.use-lease", "file: "+oneMachine)
	if members > 0 {
		r.sizeWarnings(strategy, members, warn)
	}
	return ws
}

// warner takes a warning, if it applies.
type warner func(when bool, key, format string, args ...any)

func warnings(ws *[]timing.Warning) warner {
	return func(when bool, key, format string, args ...any) {
		if when {
			*ws = append(*ws, timing.Warning{Key: key, Text: fmt.Sprintf(format, args...)})
		}
	}
}

// leaseless says what may become of a cluster whose strategy has no lease.
var leaseless = map[string]string{
	"down-all":      "every partition downs all members",
	"keep-majority": bothStay + "all go down in a split into three or more parts without a majority",
	"keep-oldest":   bothStay + "a larger side may go down because the oldest is on the other one",
	"keep-referee":  bothStay + "all go down when the referee is gone",
	"static-quorum": bothStay + "all go down where no part has quorum-size members",
}

const bothStay = "both sides may stay where they see different members, and "

func (r *SplitBrainResolver) sizeWarnings(strategy string, members int, warn warner) {
	majority := members/2 + 1
	warn(r.MinMembers > members, "min-members", "%d: a cluster of %d members never arms", r.MinMembers, members)
	warn(r.MinMembers < majority, "min-members",
		"%d is less than a majority of %d members: a part that starts alone is taken for the whole; use %d",
		r.MinMembers, members, majority)
	switch strategy {
	case "static-quorum":
		q := r.StaticQuorum.QuorumSize
		warn(members > 2*q-1, "static-quorum.quorum-size",
			"%d allows at most %d members: with %d any partition downs them all; use %d",
			q, 2*q-1, members, majority)
		warn(q > members, "static-quorum.quorum-size",
			"%d is more than the %d members: any partition downs them all", q, members)
	case "keep-majority":
		warn(members == 2, "active-strategy",
			"keep-majority with 2 members keeps the one with the lowest address, whichever of them works")
	case "keep-referee":
		limit := r.KeepReferee.DownAllIfLessThanNodes
		warn(limit > members, "keep-referee.down-all-if-less-than-nodes",
			"%d is more than the %d members: any partition downs them all", limit, members)
	}
}

const oneMachine = "safe only while all members run on this one machine"

func (f *File) leaseWarnings(warn warner) {
	r, usual := &f.SplitBrainResolver, DefaultSplitBrainResolver()
	warn(r.IndirectlyConnected == strategies.KeepLargestGroup &&
		r.DownAllWhenIndirectlyConnected != usual.DownAllWhenIndirectlyConnected,
		"down-all-when-indirectly-connected", "has no effect with indirectly-connected: %s: the lease makes any group safe",
		strategies.KeepLargestGroup)
	implementation := f.SplitBrainResolver.LeaseMajority.LeaseImplementation
	warn(f.Lease.Settings(implementation).HeartbeatTimeout == lease.Infinite, "heartbeat-timeout",
		"infinite: the lease of a holder that crashed stays held until an operator runs sbr lease force-release")
	switch implementation {
	case ImplementationFile:
		warn(true, "lease-implementation", "file: "+oneMachine)
	case ImplementationKubernetes:
		api := f.Lease.Kubernetes.API
		warn(api == "akka" || api == "pekko", "lease.kubernetes.api",
			"%s: a program other than serf-sbr that writes the lease takes the verdict out of it; share it for locks, not for a resolver", api)
	}
}

// A store or an agent that works may need leastTimeout for an answer; nobody who chose it waits longer than
// mostDelay for a decision.
const (
	leastTimeout = 500 * time.Millisecond
	mostDelay    = 10 * time.Minute
)

// timeWarnings names times that are allowed but unsafe, beside those that package timing finds.
func (f *File) timeWarnings(in *timing.Input, r *timing.Report) (ws []timing.Warning) {
	warn, m := warnings(&ws), &f.SplitBrainResolver.LeaseMajority
	warn(in.StableAfter > mostDelay, "stable-after", "%v: both sides run for that long; use at most %v",
		in.StableAfter, mostDelay)
	if in.Lease {
		warn(in.MinorityDelay > mostDelay, "acquire-lease-delay-for-minority",
			"%v: a smaller side that is left alone waits for that long; use at most %v", in.MinorityDelay, mostDelay)
		warn(in.LeaseTimeout < leastTimeout, "lease-operation-timeout",
			"%v: an answer that takes longer counts as none, so a slow store downs members; use at least %v",
			in.LeaseTimeout, leastTimeout)
		warn(in.LeaseDeadline > mostDelay, "lease-operation-timeout",
			"%v: a side waits for a silent store for %v, the decision deadline; use at most %v",
			in.LeaseTimeout, in.LeaseDeadline, mostDelay/deadlineOperations)
		warn(m.WhenLeaseUnknown == unknownSuspend && m.SuspendTimeout < in.StableAfter, "suspend-timeout",
			"%v is shorter than stable-after (%v): who waits for the store goes down before a view is stable again; use more",
			m.SuspendTimeout, in.StableAfter)
	}
	s, decided := &f.Serf, r.Decision.Majority.Fastest
	if s.OwnNode() || s.RPC == "" && s.RPCTimeout == Default().Serf.RPCTimeout { // no stock agent is spoken of
		return ws
	}
	warn(s.RPCTimeout < leastTimeout, "serf.rpc-timeout",
		"%v: a short pause of the stock agent downs this member; use at least %v", s.RPCTimeout, leastTimeout)
	warn(in.Members > 1 && s.RPCTimeout >= decided, "serf.rpc-timeout",
		"%v is not below detection and stable-after (%v): a member whose stock agent is silent may outlive the decision; use less",
		s.RPCTimeout, decided)
	return ws
}
