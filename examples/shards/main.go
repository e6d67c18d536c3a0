// Command shards is an example: a service that counts, whose counters live in 64 shards spread over its
// members, behind HTTP. Any member takes a request and sends it to the member that runs the shard of its key.
// Members may be added and stopped while it serves: no request fails, and no count is lost.
//
//	go build ./examples/shards
//	./shards -name n1 -bind 127.0.0.1:7946 -front 127.0.0.1:8081 -lease /tmp/counters.lease
//	./shards -name n2 -bind 127.0.0.1:7947 -front 127.0.0.1:8082 -lease /tmp/counters.lease -join 127.0.0.1:7946
//	curl -X POST 127.0.0.1:8082/count/apples
//	1
//	sbr shards --url http://127.0.0.1:8081 --key apples
//
// The first answer takes some seconds: shards run once the members have settled.
// Interrupt one (Ctrl-C): its shards move with their counts. A member that crashes loses those that it had: a
// real service keeps them in a store, and has it refuse older tokens (package lease/fence).
package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options say who a member is, and where it listens.
type options struct {
	name string
	// bind is where its Serf node listens, join where others do.
	bind string
	join []string
	// front takes requests of clients, back those of other members.
	front, back string
	// lease is the file with the cluster's lease: all members of this example are on one machine.
	lease string
	// stableAfter is how long the members wait before they decide about an unreachable member.
	stableAfter time.Duration
	// linger is how long a member that stops still says that its shards are not here any more.
	linger time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.name, "name", "n1", "name of this member")
	flag.StringVar(&o.bind, "bind", "127.0.0.1:7946", "`address` of its Serf node")
	flag.StringVar(&o.front, "front", "127.0.0.1:8081", "`address` for clients")
	flag.StringVar(&o.back, "back", "127.0.0.1:0", "`address` for the other members")
	flag.StringVar(&o.lease, "lease", "counters.lease", "`file` of the lease, the same for all members")
	join := flag.String("join", "", "`addresses` of other members' Serf nodes, with commas between them")
	flag.DurationVar(&o.stableAfter, "stable-after", 20*time.Second,
		"how long a partition lasts before a decision")
	flag.DurationVar(&o.linger, "linger", 2*time.Second,
		"how long to redirect others once the shards have moved")
	flag.Parse()
	if *join != "" {
		o.join = strings.Split(*join, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := start(ctx, o)
	if err != nil {
		slog.Error("cannot start", "error", err)
		os.Exit(1)
	}
	<-ctx.Done()
	stop() // a second signal ends the process
	if err := m.stop(context.Background()); err != nil {
		slog.Error("stopping", "error", err)
	}
}
