package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func parse(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("sbr.yaml", []byte(text))
	require.NoError(t, err)
	return f
}

// The contract's own example is a valid file, and it spells out nothing but defaults.
func TestLoad_TheFullFileIsTheDefault(t *testing.T) {
	full, err := config.Load("testdata/full.yaml")
	require.NoError(t, err)
	minimal := parse(t, "system: payments\nsplit-brain-resolver: {static-quorum: {quorum-size: 3}}")
	require.Equal(t, string(minimal.Effective()), string(full.Effective()))
	require.Equal(t, minimal.Digest(), full.Digest())
}

func TestLoad_NamesTheFile(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "sbr.yaml")
	require.NoError(t, os.WriteFile(path, make([]byte, 2<<20), 0o600))
	_, err = config.Load(path)
	require.EqualError(t, err, path+": the input is larger than 1048576 bytes")
}

func TestDefault_NeedsOnlyASystem(t *testing.T) {
	f := config.Default()
	require.EqualError(t, f.Validate(),
		"system: is not set: it must name the cluster; the lease is named after it")
	f.System = "payments"
	require.NoError(t, f.Validate())
	require.Equal(t, sbr.DefaultConfig(), f.Resolver())
	require.Equal(t, "payments-sbr", f.LeaseName())
	s, err := f.SplitBrainResolver.Strategy()
	require.NoError(t, err)
	require.Equal(t, strategies.DefaultSettings().LeaseMajority, s)
}

func TestParse_ConvertsEverySetting(t *testing.T) {
	f := parse(t, `
system: payments
split-brain-resolver:
  active-strategy: Lease-Majority
  stable-after: 8s
  down-all-when-unstable: 7s
  down-all-when-indirectly-connected: off
  indirectly-connected: down
  min-members: 3
  settle-after: 1s
  probe: {interval: 2s, timeout: 300ms, tries: 2, neighbours: 4, budget: 50}
  lease-majority:
    lease-implementation: file
    lease-name: " mine "
    acquire-lease-delay-for-minority: 3s
    release-after: 10s
    role: web
    when-lease-unknown: suspend
    suspend-timeout: 1m
    watch: off
lease:
  lease-operation-timeout: 2s
  file: {path: /shared/lease, heartbeat-timeout: 30s, heartbeat-interval: 4s}
serf: {profile: wan}
`)
	want := sbr.DefaultConfig()
	want.StableAfter, want.DownAllWhenUnstable, want.DownAllWhenIndirectlyConnected = 8*time.Second,
		7*time.Second, sbr.Off
	want.MinMembers, want.SettleAfter, want.ReleaseAfter = 3, time.Second, 10*time.Second
	want.WhenLeaseUnknown, want.SuspendTimeout = sbr.UnknownSuspend, time.Minute
	want.LeaseTimeout, want.LeaseDeadline, want.LeaseRetry = 2*time.Second, 6*time.Second, 400*time.Millisecond
	want.HolderRetry = 4 * time.Second
	want.Watched = false
	require.Equal(t, want, f.Resolver())
	require.Equal(t, "mine", f.LeaseName())
	s, err := f.SplitBrainResolver.Strategy()
	require.NoError(t, err)
	require.Equal(t, strategies.LeaseMajority{
		Role: "web", AcquireLeaseDelayForMinority: 3 * time.Second,
		IndirectlyConnected: strategies.DownIndirectlyConnected,
	}, s)

	in, _ := f.Times(5, "")
	wan, _ := timing.Profile("wan")
	require.Equal(t, wan, in.Gossip)
	require.Equal(t, reachability.Settings{Interval: 2 * time.Second, Timeout: 300 * time.Millisecond, Tries: 2,
		Neighbours: 4, Budget: 50}, in.Probes)
	require.True(t, in.Lease)
	require.False(t, in.Watch)
	require.Equal(t, 4*time.Second, in.HeartbeatInterval)
}

func TestParse_UnstableFollowsStableAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"stable-after: 20s":                             15 * time.Second,
		"stable-after: 4s":                              4 * time.Second,
		"stable-after: 4s, down-all-when-unstable: on":  4 * time.Second,
		"stable-after: 4s, down-all-when-unstable: off": 0,
		"stable-after: 4s, down-all-when-unstable: 9s":  9 * time.Second,
	} {
		f := parse(t, "system: s\nsplit-brain-resolver: {"+text+"}")
		require.Equal(t, want, f.Resolver().DownAllWhenUnstable, text)
	}
}

func TestLeaseSettings_OverridesFallBack(t *testing.T) {
	for _, tc := range []struct{ name, lease, implementation, want string }{
		{"defaults", "{}", "kubernetes", "2m0s 12s 5s"},
		{"computed", "{heartbeat-timeout: 100s}", "kubernetes", "1m40s 10s 5s"},
		{"computed, at least 5s", "{heartbeat-timeout: 40s}", "kubernetes", "40s 5s 5s"},
		{"written", "{heartbeat-timeout: 100s, heartbeat-interval: 20s}", "kubernetes", "1m40s 20s 5s"},
		{"override of one", "{heartbeat-timeout: 100s, heartbeat-interval: 20s, kubernetes: {lease-operation-timeout: 3s}}", "kubernetes", "1m40s 20s 3s"},
		{"override of the timeout computes the interval anew", "{heartbeat-timeout: 100s, heartbeat-interval: 20s, kubernetes: {heartbeat-timeout: 60s}}", "kubernetes", "1m0s 6s 5s"},
		{"override for another", "{file: {path: p, heartbeat-timeout: 60s}}\nsingleton: {use-lease: file}", "kubernetes", "2m0s 12s 5s"},
		{"unknown implementation", "{heartbeat-timeout: 100s, kubernetes: {heartbeat-timeout: 60s}}", "memory", "1m40s 10s 5s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "system: s\nlease: "+tc.lease).Lease.Settings(tc.implementation)
			require.Equal(t, tc.want, s.HeartbeatTimeout.String()+" "+s.HeartbeatInterval.String()+
				" "+s.OperationTimeout.String())
		})
	}
}

// The blocks are decoded on their own in scenario files.
func TestBlocks_DecodeOnTheirOwn(t *testing.T) {
	r := config.DefaultSplitBrainResolver()
	require.NoError(t, strictyaml.Decode([]byte("stable-after: 3s\nactive-strategy: down-all"), &r,
		strictyaml.Options{}))
	require.Empty(t, r.Problems("cluster.split-brain-resolver"))
	require.False(t, r.NeedsLease())
	require.Equal(t, 3*time.Second, r.Resolver(lease.DefaultSettings()).StableAfter)
	var l config.Lease
	require.NoError(t, strictyaml.Decode([]byte("heartbeat-timeout: 8s\nheartbeat-interval: 4s"), &l,
		strictyaml.Options{}))
	require.EqualError(t, l.Problems("cluster.lease").Err(),
		"cluster.lease.heartbeat-interval: is 4s: it must be less than half of heartbeat-timeout (8s)")
}

func TestEffective_ReadsBack(t *testing.T) {
	for name, text := range map[string]string{
		"minimal":  "system: s",
		"own node": "system: s\nserf: {node: n1, bind: '10.0.0.1:7946', join: ['10.0.0.2:7946'], tags: {role: web}, profile: local}",
		"odd values": "system: s\nsplit-brain-resolver: {active-strategy: KEEP-OLDEST, down-all-when-unstable: off, " +
			"down-all-when-indirectly-connected: on, keep-oldest: {down-if-alone: off}}\nlease: {kubernetes: {heartbeat-timeout: 1m}}",
		"secrets": "system: s\nserf: {rpc-auth-key: 'on'}\nhttp: {listen: ''}\nhooks: {on-down: [/bin/true, '5', 'null']}",
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, text)
			again := parse(t, string(f.Effective()))
			require.Equal(t, string(f.Effective()), string(again.Effective()))
			require.Equal(t, f.Digest(), again.Digest())
			require.Equal(t, f.Resolver(), again.Resolver())
		})
	}
}

func TestEffective_SpellsOutWhatIsComputed(t *testing.T) {
	text := string(parse(t, "system: s\nlease: {heartbeat-timeout: 40s}").Effective())
	for _, line := range []string{"rpc: 127.0.0.1:7373", "lease-name: s-sbr", "heartbeat-interval: 5s",
		"down-all-when-unstable: on", "watch: on"} {
		require.Contains(t, text, line)
	}
}

func TestRedacted_HidesSecrets(t *testing.T) {
	f := parse(t, `
system: s
serf: {node: a, encrypt: cg8StVXbQJ0gPvMd9o7yrg==}
split-brain-resolver: {lease-majority: {lease-implementation: postgres}}
singleton: {use-lease: mongodb}
lease: {postgres: {url: "postgres://sbr:hush@db"}, mongodb: {uri: "mongodb://sbr:hush@db", database: sbr}}
`)
	text := string(f.Redacted().Effective())
	require.NotContains(t, text, "hush")
	require.NotContains(t, text, "cg8StVXbQJ0gPvMd9o7yrg==")
	f = parse(t, "system: s\nserf: {rpc-auth-key: hush}")
	require.NotContains(t, string(f.Redacted().Effective()), "hush")
	require.Equal(t, "hush", f.Serf.RPCAuthKey)
}

func TestDigest(t *testing.T) {
	base := "system: s\n"
	digest := parse(t, base).Digest()
	require.Regexp(t, "^[a-z2-7]{8}$", digest)
	require.Equal(t, "ijhya2mw", digest,
		"members of different versions compare it: change it only with the meaning of a setting")
	for name, same := range map[string]string{
		"spelled out":    base + "split-brain-resolver: {stable-after: 20000ms, down-all-when-unstable: 15s}\nlease: {heartbeat-interval: 12s}",
		"local":          base + "serf: {rpc: '10.0.0.1:7373', profile: wan}\nhttp: {listen: ''}\nhooks: {on-down: [x]}\nlease: {kubernetes: {kubeconfig: k}}",
		"singletons":     base + "singleton: {number-of-retries: 3}", // it is about who decides on partitions
		"other strategy": base + "split-brain-resolver: {static-quorum: {quorum-size: 9}, keep-majority: {role: web}}\nlease: {file: {path: p}}\nsingleton: {use-lease: file}",
	} {
		require.Equal(t, digest, parse(t, same).Digest(), name)
	}
	postgres := base +
		"split-brain-resolver: {lease-majority: {lease-implementation: postgres}}\nlease: {postgres: "
	require.Equal(t, parse(t, postgres+"{url: a}}").Digest(),
		parse(t, postgres+"{url-file: b, table: sbr_lease}}").Digest())
	require.NotEqual(t, parse(t, postgres+"{url: a}}").Digest(),
		parse(t, postgres+"{url: a, table: ops.sbr_lease}}").Digest())
	for name, other := range map[string]string{
		"system":       "system: t",
		"provider":     base + "downing-provider: none",
		"strategy":     base + "split-brain-resolver: {active-strategy: keep-majority}",
		"role":         base + "split-brain-resolver: {lease-majority: {role: web}}",
		"delay":        base + "split-brain-resolver: {lease-majority: {acquire-lease-delay-for-minority: 3s}}",
		"stable-after": base + "split-brain-resolver: {stable-after: 19s, down-all-when-unstable: 15s}",
		"unstable":     base + "split-brain-resolver: {down-all-when-unstable: off}",
		"safeguard":    base + "split-brain-resolver: {down-all-when-indirectly-connected: off}",
		"lease name":   base + "split-brain-resolver: {lease-majority: {lease-name: x}}",
		"namespace":    base + "lease: {kubernetes: {namespace: x}}",
		"timeout":      base + "lease: {kubernetes: {heartbeat-timeout: 60s}}",
		"unknown":      base + "split-brain-resolver: {lease-majority: {when-lease-unknown: suspend}}",
	} {
		require.NotEqual(t, digest, parse(t, other).Digest(), name)
	}
}

func TestWarnings(t *testing.T) {
	const (
		both   = "both sides may stay where they see different members, and "
		safe   = "; lease-majority keeps one side, whatever they see"
		quorum = "active-strategy: static-quorum has no lease: " + both +
			"all go down where no part has quorum-size members" + safe
	)
	for _, tc := range []struct {
		text    string
		members int
		want    string
	}{
		{"{}", 0, ""},
		{"{}", 1, ""},
		{"{}", 5, "min-members: 1 is less than a majority of 5 members: a part that starts alone is taken for the whole; use 3"},
		{"{min-members: 2}", 4, "min-members: 2 is less than a majority of 4 members: a part that starts alone is taken for the whole; use 3"},
		{"{min-members: 3}", 4, ""},
		{"{min-members: 3}", 5, ""},
		{"{min-members: 3, active-strategy: static-quorum, static-quorum: {quorum-size: 3}}", 5, quorum},
		{"{active-strategy: static-quorum, static-quorum: {quorum-size: 9}}", 0, quorum},
		{"{min-members: 4, active-strategy: static-quorum, static-quorum: {quorum-size: 3}}", 6, quorum +
			"\nstatic-quorum.quorum-size: 3 allows at most 5 members: with 6 any partition downs them all; use 4"},
		{"{min-members: 2, active-strategy: static-quorum, static-quorum: {quorum-size: 3}}", 2, quorum +
			"\nstatic-quorum.quorum-size: 3 is more than the 2 members: any partition downs them all"},
		{"{min-members: 2, active-strategy: keep-majority}", 2, "active-strategy: keep-majority has no lease: " +
			both + "all go down in a split into three or more parts without a majority" + safe +
			"\nactive-strategy: keep-majority with 2 members keeps the one with the lowest address, whichever of them works"},
		{"{min-members: 2, active-strategy: keep-referee, keep-referee: {address: a, down-all-if-less-than-nodes: 4}}", 3,
			"active-strategy: keep-referee has no lease: " + both + "all go down when the referee is gone" + safe +
				"\nkeep-referee.down-all-if-less-than-nodes: 4 is more than the 3 members: any partition downs them all"},
		{"{active-strategy: keep-oldest}", 0, "active-strategy: keep-oldest has no lease: " +
			both + "a larger side may go down because the oldest is on the other one" + safe},
		{"{active-strategy: DOWN-ALL}", 0, "active-strategy: down-all has no lease: every partition downs all members" + safe},
		{"{min-members: 4}", 3, "min-members: 4: a cluster of 3 members never arms"},
		{"{min-members: 3, down-all-when-indirectly-connected: off, indirectly-connected: down}", 5, ""},
		{"{min-members: 3, down-all-when-indirectly-connected: off}", 5,
			"down-all-when-indirectly-connected: has no effect with indirectly-connected: keep-largest-group: the lease makes any group safe"},
	} {
		var got []string
		for _, w := range parse(t, "system: s\nsplit-brain-resolver: "+tc.text).Warnings(tc.members) {
			got = append(got, w.String())
		}
		require.Equal(t, tc.want, strings.Join(got, "\n"))
	}
	const beside = "system: s\nsplit-brain-resolver: {lease-majority: {lease-implementation: %s}}\n" +
		"singleton: {use-lease: file}\nlease: {file: {path: p}}"
	for implementation, want := range map[string]string{
		"kubernetes": "singleton.use-lease: file: safe only while all members run on this one machine",
		"file":       "lease-implementation: file: safe only while all members run on this one machine",
	} {
		ws := parse(t, fmt.Sprintf(beside, implementation)).Warnings(0)
		require.Len(t, ws, 1)
		require.Equal(t, want, ws[0].String())
	}
	none := parse(t, "system: s\ndowning-provider: none")
	require.Equal(t, "downing-provider: none: nobody is ever downed", none.Warnings(5)[0].String())
}

// Each warning names its key and the way out.
func TestTimes_WarnsOfTimes(t *testing.T) {
	const majority, beside = "split-brain-resolver: {lease-majority: ",
		"serf: {rpc: '127.0.0.1:7373', rpc-timeout: "
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"split-brain-resolver: {stable-after: 10m}", ""},
		{"split-brain-resolver: {stable-after: 11m}", "stable-after: 11m0s: both sides run for that long; use at most 10m0s"},
		{majority + "{acquire-lease-delay-for-minority: 11m}}",
			"acquire-lease-delay-for-minority: 11m0s: a smaller side that is left alone waits for that long; use at most 10m0s"},
		{"lease: {lease-operation-timeout: 499ms}", "lease-operation-timeout: 499ms: an answer that takes longer counts as none, " +
			"so a slow store downs members; use at least 500ms"},
		{"lease: {heartbeat-timeout: 1h, lease-operation-timeout: 201s}", "lease-operation-timeout: 3m21s: a side waits for a silent store " +
			"for 10m3s, the decision deadline; use at most 3m20s"},
		{"lease: {heartbeat-timeout: 1h, lease-operation-timeout: 200s}", ""},
		{majority + "{suspend-timeout: 10s}}", ""},
		{majority + "{when-lease-unknown: suspend, suspend-timeout: 20s}}", ""},
		{majority + "{when-lease-unknown: suspend, suspend-timeout: 10s}}", "suspend-timeout: 10s is shorter than stable-after (20s): " +
			"who waits for the store goes down before a view is stable again; use more"},
		{beside + "22s}", ""},
		{beside + "400ms}", "serf.rpc-timeout: 400ms: a short pause of the stock agent downs this member; use at least 500ms"},
		{beside + "22500ms}", "serf.rpc-timeout: 22.5s is not below detection and stable-after (22.5s): " +
			"a member whose stock agent is silent may outlive the decision; use less"},
		{"split-brain-resolver: {stable-after: auto}", ""}, // whoever embeds it has no stock agent
		{"split-brain-resolver: {stable-after: auto}\nserf: {node: a}", ""},
		{"split-brain-resolver: {stable-after: auto}\n" + beside + "15s}", "serf.rpc-timeout: 15s is not below detection and " +
			"stable-after (9.5s): a member whose stock agent is silent may outlive the decision; use less"},
	} {
		in, report := parse(t, "system: s\n"+tc.text).Times(0, "")
		require.Equal(t, 5, in.Members)
		var got []string
		for _, w := range report.Warnings {
			got = append(got, w.String())
		}
		require.Equal(t, tc.want, strings.Join(got, "\n"), tc.text)
	}
}

// Rule 20: no lease, no start. KUBECONFIG names nothing.
func TestLeaseStore(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "/x")
	implementation := func(name string) string {
		return "\nsplit-brain-resolver: {lease-majority: {lease-implementation: " + name + "}}"
	}
	for text, want := range map[string]string{
		"system: s": "",
		"system: s\nlease: {heartbeat-timeout: 60s}":                                    "",
		"system: s\nlease: {kubernetes: {}}":                                            "",
		"system: s\nsplit-brain-resolver: {lease-majority: {lease-name: other}}":        "",
		"system: s\nlease: {kubernetes: {namespace: shop}}":                             config.ImplementationKubernetes,
		"system: s" + implementation("kubernetes"):                                      config.ImplementationKubernetes,
		"system: s\nlease: {file: {path: /x}}" + implementation("file"):                 config.ImplementationFile,
		"system: s\nlease: {file: {path: /x}}\nsingleton: {use-lease: file}":            "",
		"system: s\nlease: {file: {path: /x}, kubernetes: {}}" + implementation("file"): config.ImplementationFile,
	} {
		got, err := parse(t, text).LeaseStore()
		require.Equal(t, want, got, text)
		require.Equal(t, want == "", err != nil, text)
	}
	for _, text := range []string{"system: s\ndowning-provider: none",
		"system: s\nsplit-brain-resolver: {active-strategy: down-all}"} {
		got, err := parse(t, text).LeaseStore()
		require.NoError(t, err, "it needs none")
		require.Empty(t, got, text)
	}
	_, err := parse(t, "system: s").LeaseStore()
	require.ErrorContains(t, err, "sbr.yaml: split-brain-resolver.lease-majority.lease-implementation: is not set, and this is no pod: write ")
	require.NotContains(t, err.Error(), "\n")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	got, err := parse(t, "system: s").LeaseStore()
	require.NoError(t, err)
	require.Equal(t, config.ImplementationKubernetes, got, "the account of the pod")
}

// stable-after: auto with a lease follows the number of members, down-all-when-unstable goes with it, and the
// digest carries the words. Without a lease it is 20 s at all members.
func TestParse_StableAfterAuto(t *testing.T) {
	t.Parallel()
	parse := func(rules string) *config.File {
		f, err := config.Parse("sbr.yaml", []byte("system: x\nsplit-brain-resolver: {"+rules+"}\n"))
		require.NoError(t, err)
		return f
	}
	auto := parse("stable-after: auto")
	for members, want := range map[int]time.Duration{1: 7, 5: 7, 10: 10, 20: 13, 50: 17, 100: 20} {
		rules := auto.Resolver()
		require.Equal(t, want*time.Second, rules.StableIn(members), "%d members", members)
		require.Equal(t, sbr.UnstableAfter(want*time.Second), rules.UnstableIn(members), "%d members", members)
		in, report := auto.Times(members, "")
		require.True(t, in.Auto)
		require.Equal(t, want*time.Second, in.StableAfter)
		for _, w := range report.Warnings {
			require.NotContains(t, w.Key, "stable-after")
		}
	}
	require.Equal(t, 20*time.Second, auto.Margin())
	require.Contains(t, string(auto.Effective()), "stable-after: auto")
	again, err := config.Parse("sbr.yaml", auto.Effective())
	require.NoError(t, err)
	require.Equal(t, auto.Digest(), again.Digest())
	require.NotEqual(t, auto.Digest(), parse("stable-after: 7s").Digest())
	allElseFixed := func(stable string) *config.File {
		return parse("down-all-when-unstable: 10s, stable-after: " + stable + "}\nsingleton: {removal-margin: 20s")
	}
	require.NotEqual(t, allElseFixed("auto").Digest(), allElseFixed("7s").Digest(), "7 s are those of five members")

	alone := parse("active-strategy: keep-majority, stable-after: auto")
	require.Equal(t, 20*time.Second, alone.Resolver().StableAfter)
	require.Equal(t, alone.Digest(), parse("active-strategy: keep-majority, stable-after: 20s").Digest())
}

func TestSingleton_Margin(t *testing.T) {
	require.Equal(t, 20*time.Second, parse(t, "system: payments").Margin(), "that of the resolver")
	require.Equal(t, 7*time.Second,
		parse(t, "system: payments\nsplit-brain-resolver: {stable-after: 7s}").Margin())
	require.Equal(t, time.Minute, parse(t, "system: payments\nsingleton: {removal-margin: 1m}").Margin())
}

// Each singleton has a lease of its own, named after it, where and how the block of the implementation says.
func TestSingleton_Lease(t *testing.T) {
	f := parse(t, "system: payments\nsingleton: {use-lease: file}\nlease: {file: {path: /run/sbr.lease}, kubernetes: {namespace: shop}}")
	require.Equal(t, "payments-singleton-backup", f.SingletonLeaseName("backup"))
	var file struct {
		Path string `yaml:"path"`
	}
	require.NoError(t, f.SingletonLease("backup")(&file))
	require.Equal(t, "/run/sbr.lease.singleton-backup", file.Path)
	require.Equal(t, "/run/sbr.lease", f.Lease.File.Path)

	f.Singleton.UseLease = "kubernetes"
	var kubernetes struct {
		Namespace string `yaml:"namespace"`
	}
	require.NoError(t, f.SingletonLease("backup")(&kubernetes))
	require.Equal(t, "shop", kubernetes.Namespace)
}
