package config

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Key is one key of sbr.yaml as people read about it: in the template of sbr config init, the JSON Schema and docs/configuration.md.
type Key struct {
	// Path is the key with the blocks that it is in, such as lease.kubernetes.namespace.
	Path string
	// Default is its value where the file does not set it, as YAML on one line. Empty: none, or Text says what follows from it.
	Default string
	// Text is what it means, in sentences without markup.
	Text string
	// Block says that it holds other keys.
	Block bool
}

// Keys lists every key in the order of the file, blocks before what is in them. The times of a lease, which the block of an
// implementation may set for itself, are listed once.
func Keys() (keys []Key) {
	f := Default()
	var defaults yaml.Node
	if err := yaml.Unmarshal(f.Effective(), &defaults); err != nil {
		panic(err) // Effective writes YAML
	}
	var list func(t reflect.Type, at string, values *yaml.Node)
	list = func(t reflect.Type, at string, values *yaml.Node) {
		for field := range t.Fields() {
			name, rest, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			switch {
			case rest == "inline" && strings.Contains(at, "."): // said under lease
				continue
			case rest == "inline":
				list(field.Type, at, values)
				continue
			case name == "" || name == "-":
				continue
			}
			k := Key{Path: strings.TrimPrefix(at+"."+name, "."), Block: isBlock(field.Type)}
			k.Text = texts[k.Path]
			value := entry(values, name)
			if !k.Block && value != nil && !strings.Contains(k.Text, "Default:") && !strings.HasPrefix(k.Text, "Required") {
				k.Default = oneLine(value)
			}
			keys = append(keys, k)
			if k.Block {
				list(field.Type, k.Path, value)
			}
		}
	}
	list(reflect.TypeFor[File](), "", defaults.Content[0])
	return keys
}

// isBlock tells structs that hold keys from those that are one value.
func isBlock(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Tag.Get("yaml") != ""
	})
}

// entry is the value under a key of a mapping, nil if it is not there.
func entry(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// oneLine is a value as YAML on one line.
func oneLine(n *yaml.Node) string {
	flow := *n
	flow.Style |= yaml.FlowStyle
	data, err := yaml.Marshal(&flow)
	if err != nil {
		panic(err) // it was read as YAML
	}
	return strings.TrimSpace(string(data))
}

// texts say what each key means. A text that names a default by itself is for one that is computed.
var texts = map[string]string{
	"system":           "Required. The name of the cluster; the lease is called <system>-sbr. No spaces.",
	"downing-provider": "split-brain-resolver, or none: nobody is ever downed, and nothing is watched.",

	"split-brain-resolver": "The rules. All members must have the same; they compare a digest of them (tag sbr_cfg). Own probes, and the " +
		"settings of strategies that are not active, are not part of it.",
	"split-brain-resolver.active-strategy": "lease-majority, keep-majority, static-quorum, keep-oldest, keep-referee or down-all.",
	"split-brain-resolver.stable-after": "How long the view must not have changed before a decision: a duration or auto. " +
		"0s decides at once. auto follows the number of members: 7s up to 5, 10s for 10, 13s for 20, 17s for 50, 20s for 100; without a lease it is 20s.",
	"split-brain-resolver.down-all-when-unstable": "on, off or a duration. A view that was unstable for stable-after and this long ends: " +
		"without a lease every member goes down, with a lease each side asks for it with its present view. on is three quarters of " +
		"stable-after, at least 4s.",
	"split-brain-resolver.down-all-when-indirectly-connected": "on, off or 0 to 1. Down every member when a decision about indirectly " +
		"connected members would down this share of the members or more. on is 0 (always), off is 1 (never). No effect with keep-largest-group.",
	"split-brain-resolver.indirectly-connected": "keep-largest-group or down; strategies with a lease only. Where the partition is not clean, " +
		"the largest group of members that all reach each other survives, or all indirectly connected members are downed.",
	"split-brain-resolver.min-members":  "How many members must have been there before the resolver arms. Set it to a majority of the cluster.",
	"split-brain-resolver.settle-after": "How long nothing must have changed after the start before the resolver arms.",

	"split-brain-resolver.probe":          "The resolver's own probes, beside the failure detector of Serf.",
	"split-brain-resolver.probe.interval": "The time between two rounds of probes.",
	"split-brain-resolver.probe.timeout":  "How long one probe may take; shorter than the interval.",
	"split-brain-resolver.probe.tries":    "How many probes in a row must fail.",
	"split-brain-resolver.probe.neighbours": "How many members each one probes in every round, and how many observers must agree. " +
		"0: no own probes.",
	"split-brain-resolver.probe.budget": "How many members each one probes in a round at most while any is suspected; more than neighbours.",

	"split-brain-resolver.static-quorum":                            "Settings of the strategy static-quorum.",
	"split-brain-resolver.static-quorum.quorum-size":                "Required by that strategy. The smallest side that survives; more than half of the members.",
	"split-brain-resolver.static-quorum.role":                       "Count only members with this role.",
	"split-brain-resolver.keep-majority":                            "Settings of the strategy keep-majority.",
	"split-brain-resolver.keep-majority.role":                       "Count only members with this role.",
	"split-brain-resolver.keep-oldest":                              "Settings of the strategy keep-oldest.",
	"split-brain-resolver.keep-oldest.down-if-alone":                "Down the oldest member when it is cut off from all others.",
	"split-brain-resolver.keep-oldest.role":                         "Count only members with this role; the oldest of them is the oldest.",
	"split-brain-resolver.keep-referee":                             "Settings of the strategy keep-referee.",
	"split-brain-resolver.keep-referee.address":                     "Required by that strategy. The referee: host:port, or its node name.",
	"split-brain-resolver.keep-referee.down-all-if-less-than-nodes": "Down the side of the referee as well when it has fewer members.",

	"split-brain-resolver.lease-majority": "Settings of the strategy lease-majority and of its lease.",
	"split-brain-resolver.lease-majority.lease-implementation": "Which store keeps the lease: a key of the block lease. Required outside " +
		"of a pod. Default: kubernetes in a pod.",
	"split-brain-resolver.lease-majority.lease-name": "The name of the lease. Default: <system>-sbr.",
	"split-brain-resolver.lease-majority.acquire-lease-delay-for-minority": "How long the smaller side waits before it asks for the lease; " +
		"smaller groups wait up to four times as long.",
	"split-brain-resolver.lease-majority.release-after": "How long the winner keeps the lease once all downed members are gone.",
	"split-brain-resolver.lease-majority.role":          "Count only members with this role.",
	"split-brain-resolver.lease-majority.when-lease-unknown": "down or suspend: what a side does when none of its members gets an answer " +
		"from the store.",
	"split-brain-resolver.lease-majority.suspend-timeout": "How long suspend lasts at most, and a member that cannot learn its standing " +
		"after a pause or a heal stays suspended.",
	"split-brain-resolver.lease-majority.watch": "Every member watches the verdict.",

	"lease": "The times of leases and the places of their stores. All members must use the same.",
	"lease.heartbeat-timeout": "How long a holder without a heartbeat stays the holder; infinite: until an operator releases the lease. " +
		"The block of a store may set this key and the next two for itself.",
	"lease.heartbeat-interval": "The time between two heartbeats; less than half of heartbeat-timeout. " +
		"Default: a tenth of heartbeat-timeout, at least 5s.",
	"lease.lease-operation-timeout": "The limit of each operation, which is up to two requests. Three of them are the decision deadline.",

	"lease.kubernetes":            "A Lease object of Kubernetes.",
	"lease.kubernetes.namespace":  "The namespace of the Lease. Default: that of the pod, or of the kubeconfig, or default.",
	"lease.kubernetes.kubeconfig": "A path. Default: the service account of the pod, or what kubectl would use.",
	"lease.kubernetes.context":    "The context of the kubeconfig. Default: its current one.",
	"lease.kubernetes.api": "Which object: native (coordination.k8s.io), akka (akka.io) or pekko (pekko.apache.org). " +
		"Default: native.",
	"lease.file":      "A file, for members that all run on one machine.",
	"lease.file.path": "The file, or a folder for several leases.",

	"lease.etcd":               "A key of an etcd cluster.",
	"lease.etcd.endpoints":     "Required by that store. The addresses of the members of the etcd cluster: URLs or host:port.",
	"lease.etcd.prefix":        "What stands before the name of the lease in its key. Default: " + defaultPrefix + ".",
	"lease.etcd.username":      "The user of etcd. Default: none.",
	"lease.etcd.password-file": "A file with the password. Default: the variable SBR_ETCD_PASSWORD of the environment.",
	"lease.etcd.tls":           "TLS towards etcd: used with any of its keys, and with https.",
	"lease.etcd.tls.ca":        "A file with the roots that are trusted, PEM. Default: those of the machine.",
	"lease.etcd.tls.cert":      "A file with the certificate of this client, PEM; with key.",
	"lease.etcd.tls.key":       "A file with its key, PEM.",

	"lease.postgres": "A row in a table of PostgreSQL; sbr manifests --store postgres prints the table.",
	"lease.postgres.url": "A connection string as libpq knows it; hidden where the configuration is printed. Default: the variable " +
		"SBR_POSTGRES_URL of the environment.",
	"lease.postgres.url-file": "A file with that string, instead of url.",
	"lease.postgres.table":    "The table, with its schema or without. Default: " + defaultTable + ".",

	"lease.mongodb": "A document in a collection of MongoDB. Experimental.",
	"lease.mongodb.uri": "A connection string; hidden where the configuration is printed. Default: the variable SBR_MONGODB_URI of the " +
		"environment.",
	"lease.mongodb.uri-file":   "A file with that string, instead of uri.",
	"lease.mongodb.database":   "Required by that store. The database.",
	"lease.mongodb.collection": "The collection. Default: " + defaultCollection + ".",

	"serf":              "For sbr agent: the stock agent beside it, or the Serf node that it runs itself. The keys from node to tags make it a node and exclude rpc.",
	"serf.rpc":          "The RPC address of the stock agent.",
	"serf.rpc-auth-key": "The key of its RPC; hidden where the configuration is printed.",
	"serf.rpc-timeout": "How long the stock agent may be silent before this member goes down. It is suspended within 2 s. " +
		"Keep it below detection and stable-after.",
	"serf.probe":        "The UDP address for probes among the agents beside stock agents. Open it between the nodes.",
	"serf.node":         "The name of the node. Default: the name of the host.",
	"serf.bind":         "Where the node listens. Default: 0.0.0.0:7946.",
	"serf.advertise":    "The address that it tells the others: host or host:port.",
	"serf.join":         "Members to join, tried until one answers. Beside a stock agent: where to look when members are missing.",
	"serf.encrypt":      "The gossip key in base64; hidden where the configuration is printed.",
	"serf.keyring-file": "Serf's file with several gossip keys, instead of encrypt.",
	"serf.snapshot":     "The path of Serf's snapshot.",
	"serf.rejoin":       "Join again from the snapshot after a leave.",
	"serf.unique-node": "Add a random part to the name at each start, so that a node that returns at another address is not in conflict " +
		"with its predecessor.",
	"serf.tags":    "Tags of the node. role is what strategies count by.",
	"serf.profile": "lan, wan or local: the settings of Serf's failure detector; beside a stock agent those it runs with.",
	"serf.leave-on-terminate": "SIGTERM and SIGINT leave the cluster; beside a stock agent, which stays, its tags are taken back. off: the next " +
		"agent continues the same incarnation.",

	"http":               "For sbr agent: its status page, health endpoints and metrics.",
	"http.listen":        "host:port; empty serves nothing.",
	"http.tls-cert-file": "A certificate, PEM; with tls-key-file.",
	"http.tls-key-file":  "Its key, PEM.",
	"http.token-file": "A file with a bearer token, which everything but /healthz then requires. A client with the token can also down " +
		"members (sbr down).",

	"hooks":            "For sbr agent: commands, each a list of the program and its arguments.",
	"hooks.on-suspend": "Runs when this member is suspended.",
	"hooks.on-resume":  "Runs when it resumes.",
	"hooks.on-down":    "Runs when it is downed.",
	"hooks.timeout":    "The limit of each run.",
	"hooks.grace":      "The limit of everything that is done once this member is downed; then the process ends.",
	"hooks.pid-file":   "The file with the process to signal when this member is downed.",
	"hooks.signal":     "That signal.",

	"singleton": "For programs of sbr run --singleton. All members must use the same.",
	"singleton.use-lease": "A key of the block lease: a program runs only with a lease of its own, <system>-singleton-<name> (with file: " +
		"<path>.singleton-<name>). Empty: none.",
	"singleton.lease-retry-interval":     "The pause before the lease is requested again when its state is unknown.",
	"singleton.hand-over-retry-interval": "The pause between two requests to the other members.",
	"singleton.number-of-retries":        "How often a silent member is asked before a lease decides; times the interval, how long a leaving agent waits for a successor.",
	"singleton.removal-margin":           "How long nothing starts after the removal of a member that may have run it. off is stable-after, with auto 20s.",
}
