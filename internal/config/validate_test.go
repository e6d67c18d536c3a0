package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

func TestParse_NamesEveryProblem(t *testing.T) {
	const resolver = "split-brain-resolver:\n  "
	const majority = "split-brain-resolver:\n  lease-majority:\n    "
	signals := strings.Join(config.Signals(), ", ")
	for _, tc := range []struct{ in, want string }{
		{resolver + "stable-afer: 20s", "sbr.yaml:3: split-brain-resolver.stable-afer: unknown key; the nearest known key is stable-after"},
		{"stable-after: 20s", "sbr.yaml:2: stable-after: unknown key here; the nearest known key is split-brain-resolver.stable-after"},
		{resolver + "stable-after: 20", "sbr.yaml:3: split-brain-resolver.stable-after: expected auto or a duration such as 20s, found the number 20: a unit is missing, such as 20s"},
		{resolver + "stable-after: -1s", "sbr.yaml:3: split-brain-resolver.stable-after: is -1s: it must not be negative"},
		{resolver + "stable-after: 2000h", "sbr.yaml:3: split-brain-resolver.stable-after: is 2000h0m0s: it must be at most 1000h0m0s"},
		{resolver + "active-strategy: keep-majorty", `sbr.yaml:3: split-brain-resolver.active-strategy: "keep-majorty" is unknown; the nearest is keep-majority (known are down-all, keep-majority, keep-oldest, keep-referee, lease-majority, static-quorum)`},
		{resolver + "active-strategy: static-quorum", "sbr.yaml:3: split-brain-resolver.static-quorum.quorum-size: is 0: it must be at least 1"},
		{resolver + "active-strategy: keep-referee", "sbr.yaml:3: split-brain-resolver.keep-referee.address: is empty: it must be the address (host:port) or the name of the referee"},
		{resolver + "down-all-when-unstable: 0s", "sbr.yaml:3: split-brain-resolver.down-all-when-unstable: is 0s: it must be more than 0s, or off"},
		{resolver + "down-all-when-indirectly-connected: 2", `sbr.yaml:3: split-brain-resolver.down-all-when-indirectly-connected: expected on, off or a number from 0 to 1, found "2"`},
		{resolver + "min-members: 0", "sbr.yaml:3: split-brain-resolver.min-members: is 0: it must be at least 1"},
		{resolver + "settle-after: -5s", "sbr.yaml:3: split-brain-resolver.settle-after: is -5s: it must not be negative"},
		{resolver + "probe: {interval: 1s, timeout: 1s}", "sbr.yaml:3: split-brain-resolver.probe.interval: is 1s: it must be longer than probe.timeout (1s)"},
		{resolver + "probe: {tries: 0}", "sbr.yaml:3: split-brain-resolver.probe.tries: is 0: it must be at least 1"},
		{resolver + "probe: {neighbours: -1}", "sbr.yaml:3: split-brain-resolver.probe.neighbours: is -1: it must not be negative (0 switches probes off)"},
		{resolver + "probe: {neighbours: 0, tries: -1}", "sbr.yaml:3: split-brain-resolver.probe.tries: is -1: it must not be negative"},
		{majority + "acquire-lease-delay-for-minority: -2s", "sbr.yaml:4: split-brain-resolver.lease-majority.acquire-lease-delay-for-minority: is -2s: it must not be negative"},
		{majority + "release-after: -2s", "sbr.yaml:4: split-brain-resolver.lease-majority.release-after: is -2s: it must not be negative"},
		{majority + "suspend-timeout: 0s", "sbr.yaml:4: split-brain-resolver.lease-majority.suspend-timeout: is 0s: it must be more than 0s"},
		{majority + "when-lease-unknown: up", `sbr.yaml:4: split-brain-resolver.lease-majority.when-lease-unknown: "up" is unknown; known are down, suspend`},
		{majority + "lease-implementation: redis", `sbr.yaml:4: split-brain-resolver.lease-majority.lease-implementation: "redis" is unknown; known are kubernetes, file, etcd, postgres, mongodb`},
		{majority + "lease-implementation: etcd", "sbr.yaml: lease.etcd.endpoints: is empty: name the members of the etcd cluster"},
		{"singleton: {use-lease: mongodb}", "sbr.yaml: lease.mongodb.database: is empty: name the database"},
		{"lease: {etcd: {endpoints: [a]}}", "sbr.yaml:2: lease.etcd: is set, but lease-implementation is kubernetes (the default): " +
			"write lease-implementation: etcd, or take this block out"},
		{resolver + "active-strategy: keep-majority\nlease: {file: {path: a}}", "sbr.yaml:4: lease.file.path: is set, but lease-implementation is kubernetes (the default): " +
			"write lease-implementation: file, or take this block out"},
		{"singleton: {use-lease: etcd}\nlease: {etcd: {endpoints: [a], tls: {cert: a}}}",
			"sbr.yaml:3: lease.etcd.tls: has one of cert and key: give both, or none"},
		{"singleton: {use-lease: etcd}\nlease: {etcd: {endpoints: ['http://a', 'https://b']}}",
			"sbr.yaml:3: lease.etcd.endpoints: mixes http:// and https://: the first one would decide for all"},
		{"singleton: {use-lease: etcd}\nlease:\n  etcd:\n    endpoints: [a, 'HTTP://b']\n    tls: {ca: a}",
			"sbr.yaml:6: lease.etcd.tls: is set, and an endpoint is http://, which uses none: write https://"},
		{"singleton: {use-lease: etcd}\nlease: {etcd: {endpoints: [a], password-file: a}}",
			"sbr.yaml:3: lease.etcd.password-file: is set, but username is not"},
		{"singleton: {use-lease: postgres}\nlease: {postgres: {url: a, url-file: b}}",
			"sbr.yaml:3: lease.postgres.url: is set, and url-file as well: leave one out"},
		{"singleton: {use-lease: mongodb}\nlease: {mongodb: {uri: a, uri-file: b, database: c}}",
			"sbr.yaml:3: lease.mongodb.uri: is set, and uri-file as well: leave one out"},
		{majority + "lease-implementation: file", "sbr.yaml: lease.file.path: is empty: the lease-implementation file needs the path of a file that all members share"},
		{majority + `role: " web"`, `sbr.yaml:4: split-brain-resolver.lease-majority.role: is " web": it must not begin or end with a space`},
		{"singleton: {use-lease: redis}", `sbr.yaml:2: singleton.use-lease: "redis" is unknown; known are kubernetes, file, etcd, postgres, mongodb`},
		{"singleton: {use-lease: file}", "sbr.yaml: lease.file.path: is empty: singleton.use-lease: file needs the path of a file that all members share; each singleton has one beside it"},
		{"singleton: {lease-retry-interval: 0s}", "sbr.yaml:2: singleton.lease-retry-interval: is 0s: it must be more than 0s"},
		{"singleton: {hand-over-retry-interval: 4m}",
			"sbr.yaml:2: singleton.hand-over-retry-interval: is 4m0s: it must be at most 3m20s"},
		{"singleton: {hand-over-retry-interval: -1s}", "sbr.yaml:2: singleton.hand-over-retry-interval: is -1s: it must be more than 0s"},
		{"singleton: {number-of-retries: 0}", "sbr.yaml:2: singleton.number-of-retries: is 0: it must be at least 1"},
		{"singleton: {removal-margin: on}", "sbr.yaml:2: singleton.removal-margin: is on: it must be off (stable-after is taken) or a duration such as 30s"},
		{"singleton: {removal-margin: 2000h}", "sbr.yaml:2: singleton.removal-margin: is 2000h0m0s: it must be at most 1000h0m0s"},
		{"downing-provider: off", `sbr.yaml:2: downing-provider: "off" is unknown; known are split-brain-resolver, none`},
		{"lease: {heartbeat-timeout: 100s, heartbeat-interval: 50s}", "sbr.yaml:2: lease.heartbeat-interval: is 50s: it must be less than half of heartbeat-timeout (1m40s)"},
		{"lease: {heartbeat-timeout: 0s}", "sbr.yaml:2: lease.heartbeat-timeout: is 0s: it must be more than 0s"},
		{"lease: {heartbeat-interval: -1s}", "sbr.yaml:2: lease.heartbeat-interval: is -1s: it must be more than 0s"},
		{"lease: {lease-operation-timeout: 0}", "sbr.yaml:2: lease.lease-operation-timeout: is 0s: it must be more than 0s"},
		{"lease:\n  kubernetes: {heartbeat-interval: 60s}", "sbr.yaml:3: lease.kubernetes.heartbeat-interval: is 1m0s: it must be less than half of heartbeat-timeout (2m0s)"},
		{"singleton: {use-lease: file}\nlease:\n  file: {path: p, heartbeat-timeout: 10s}", "sbr.yaml:4: lease.file.heartbeat-interval: is 5s: it must be less than half of heartbeat-timeout (10s)"},
		{"lease: {kubernetes: {namespace: Shop_1}}", `sbr.yaml:2: lease.kubernetes.namespace: is "Shop_1": it must be at most 63 lower case letters, digits and '-'`},
		{"serf: {profile: moon}", `sbr.yaml:2: serf.profile: "moon" is unknown; known are lan, wan, local`},
		{"serf: {rpc: localhost}", `sbr.yaml:2: serf.rpc: is "localhost": it must be host:port`},
		{"serf: {bind: '1.2.3.4:99999'}", `sbr.yaml:2: serf.bind: is "1.2.3.4:99999": a port is a number from 0 to 65535`},
		{"serf: {bind: '[::]:7946'}", `sbr.yaml:2: serf.bind: is "[::]:7946": others would be told the address [::]: set serf.advertise as well, or bind 0.0.0.0 or an address of this machine`},
		{"serf: {join: [a, '']}", "sbr.yaml:2: serf.join[0]: is \"a\": it must be host:port\nsbr.yaml:2: serf.join[1]: is empty: it must be host:port"},
		{"serf: {encrypt: c2VjcmV0}", "sbr.yaml:2: serf.encrypt: is not a key: it must be 16, 24 or 32 bytes in base64"},
		{"serf: {rpc: '127.0.0.1:7373', node: n1}", "sbr.yaml:2: serf.rpc: is set together with node, bind, encrypt or tags: the agent runs either beside a stock agent (rpc) or as a node of its own"},
		{"serf: {tags: {role: web, sbr_was: a, sbr_x: b}}", `sbr.yaml:2: serf.tags: has "sbr_was": a name that begins with sbr_ is for those of the resolver
sbr.yaml:2: serf.tags: has "sbr_x": a name that begins with sbr_ is for those of the resolver`},
		{"serf: {tags: {role: " + strings.Repeat("x", 400) + "}}", "sbr.yaml:2: serf.tags: take 568 bytes, up to 158 of them for those of the resolver, and Serf allows 512: make them shorter"},
		{"downing-provider: none\nserf: {tags: {role: " + strings.Repeat("x", 503) + "}}", "sbr.yaml:3: serf.tags: take 513 bytes, up to 0 of them for those of the resolver, and Serf allows 512: make them shorter"},
		{"serf: {join: ['a:1'], rpc-auth-key: k}", "sbr.yaml:2: serf.rpc-auth-key: is for a stock agent, and this agent is a node of its own: set serf.rpc as well, or take node, join, tags and the like out"},
		{"serf: {node: n1, rpc-timeout: 1s}", "sbr.yaml:2: serf.rpc-timeout: is for a stock agent, and this agent is a node of its own: set serf.rpc as well, or take node, join, tags and the like out"},
		{"serf: {node: n1, probe: ':1'}", "sbr.yaml:2: serf.probe: is for a stock agent, and this agent is a node of its own: set serf.rpc as well, or take node, join, tags and the like out"},
		{"http: {listen: 7380}", "sbr.yaml:2: http.listen: expected text, found the number 7380: put it in quotes"},
		{"hooks: {on-down: /bin/true}", `sbr.yaml:2: hooks.on-down: expected a list, found "/bin/true"`},
		{"serf: {rpc-timeout: 0s}", "sbr.yaml:2: serf.rpc-timeout: is 0s: it must be more than 0s"},
		{"serf: {probe: ''}", "sbr.yaml:2: serf.probe: is empty: it must be the UDP address at which this agent answers the others' probes"},
		{"serf: {node: a, advertise: '1::2:x y'}", `sbr.yaml:2: serf.advertise: is "1::2:x y": it must be host or host:port`},
		{"serf: {node: a, encrypt: cg8StVXbQJ0gPvMd9o7yrg==, keyring-file: k}", "sbr.yaml:2: serf.keyring-file: is set together with encrypt: the key belongs into the file then"},
		{"serf: {node: a, rejoin: on}", "sbr.yaml:2: serf.rejoin: is on without snapshot: there is nothing to rejoin from"},
		{"http: {tls-cert-file: a}", "sbr.yaml:2: http.tls-cert-file: and tls-key-file belong together: set both, or none"},
		{"hooks: {timeout: 20s}", "sbr.yaml:2: hooks.grace: is 15s: it must be more than hooks.timeout (20s), or a slow on-down is cut short by the end of the process"},
		{"hooks: {signal: ''}", `sbr.yaml:2: hooks.signal: "" is unknown; known are ` + signals},
		{"hooks: {signal: TERM}", `sbr.yaml:2: hooks.signal: "TERM" is unknown; the nearest is SIGTERM (known are ` + signals + `)`},
		{"hooks: {signal: sigterm}", `sbr.yaml:2: hooks.signal: "sigterm" is unknown; the nearest is SIGTERM (known are ` + signals + `)`},
		{"hooks: {signal: nothing}", `sbr.yaml:2: hooks.signal: "nothing" is unknown; known are ` + signals},
		{"hooks: {on-down: ['']}", "sbr.yaml:2: hooks.on-down[0]: is empty: it must be the command to run"},
	} {
		t.Run(tc.in, func(t *testing.T) {
			_, err := config.Parse("sbr.yaml", []byte("system: s\n"+tc.in))
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestParse_ReportsAllProblemsInOrder(t *testing.T) {
	_, err := config.Parse("sbr.yaml", []byte("http: {listen: x}\nsystem: a b\nsplit-brain-resolver:\n  stable-after: -1s\n  min-members: 0\n"))
	require.EqualError(t, err, `sbr.yaml:1: http.listen: is "x": it must be host:port
sbr.yaml:2: system: is "a b": it must not contain spaces or control characters
sbr.yaml:4: split-brain-resolver.stable-after: is -1s: it must not be negative
sbr.yaml:5: split-brain-resolver.min-members: is 0: it must be at least 1`)
}

func TestParse_RefusesSystemsThatNameNothing(t *testing.T) {
	for _, system := range []string{"''", "'---'", "\"a\\tb\"", "'a b'"} {
		_, err := config.Parse("sbr.yaml", []byte("system: "+system))
		require.ErrorContains(t, err, "system: is", system)
	}
}

// Whatever is accepted is complete: every conversion works and the effective configuration reads back.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"system: s", `{"system": "s"}`, "system: s\nlease: {heartbeat-timeout: 40s}",
		"system: s\nsplit-brain-resolver: {down-all-when-unstable: 1ns, stable-after: 0}", "system: s\nhooks: {on-down: [a]}",
		"system: s\nsplit-brain-resolver: {active-strategy: STATIC-quorum, static-quorum: {quorum-size: 2}}",
		"system: s\nserf: {node: a, tags: {x: y}}", "a: &b [*b]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") && !strings.HasSuffix(line, "problems more") {
					t.Fatalf("a problem without a place: %q", line)
				}
			}
			return
		}
		if err := c.Resolver().Validate(); err != nil {
			t.Fatalf("accepted, but the resolver refuses it: %v", err)
		}
		if err := c.Lease.Settings(c.SplitBrainResolver.LeaseMajority.LeaseImplementation).Validate(); err != nil {
			t.Fatalf("accepted, but the lease refuses it: %v", err)
		}
		again, err := config.Parse("g", c.Effective())
		if err != nil {
			t.Fatalf("the effective configuration does not read back: %v\n%s", err, c.Effective())
		}
		if string(again.Effective()) != string(c.Effective()) || again.Digest() != c.Digest() {
			t.Fatalf("the effective configuration changes:\n%s\n%s", c.Effective(), again.Effective())
		}
	})
}
