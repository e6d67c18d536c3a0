package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	_ "github.com/serf-sbr/serf-sbr/lease/etcd" // where the leases are
	_ "github.com/serf-sbr/serf-sbr/lease/kubernetes"
	_ "github.com/serf-sbr/serf-sbr/lease/mongodb"
	_ "github.com/serf-sbr/serf-sbr/lease/postgres"
)

// The exit statuses besides downing.ExitDowned.
const (
	exitLeft   = 0
	exitFailed = 1
	exitBad    = 2
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	os.Exit(run(os.Args[1:], signals, os.Stderr))
}

// options are the flags.
type options struct {
	config, node, bind, listen string
	join                       []string
	ledger, kind, hooks        string
	shards                     int
	leases                     bool
	every                      time.Duration
}

func parse(args []string, messages io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("shardhost", flag.ContinueOnError)
	f.SetOutput(messages)
	f.StringVar(&o.config, "config", "", "the `file` sbr.yaml (required)")
	f.StringVar(&o.node, "node", "", "name of this node (required)")
	f.StringVar(&o.bind, "bind", "", "`address` that the node listens on (required)")
	join := f.String("join", "", "`addresses` of other nodes, with commas between them")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7380", "`address` of the status page")
	f.StringVar(&o.ledger, "ledger", "", "`URL` of what the shards write to (required)")
	f.StringVar(&o.kind, "type", "work", "the type of the shards")
	f.IntVar(&o.shards, "shards", 8, "how many shards there are")
	f.BoolVar(&o.leases, "leases", false, "run each shard, and the coordinator, with a lease of its own")
	f.DurationVar(&o.every, "every", 10*time.Millisecond, "how long a run works before each write")
	f.StringVar(&o.hooks, "hooks", "",
		"`file` to which a line is added when the member is suspended, resumed or downed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *join != "" {
		o.join = strings.Split(*join, ",")
	}
	var errs []error
	for _, x := range []struct{ name, value string }{{"config", o.config}, {"node", o.node}, {"bind", o.bind},
		{"ledger", o.ledger}} {
		if x.value == "" {
			errs = append(errs, fmt.Errorf("--%s is missing", x.name))
		}
	}
	if o.shards < 1 || o.every <= 0 {
		errs = append(errs, errors.New("--shards and --every must be more than 0"))
	}
	return o, errors.Join(errs...)
}

// run returns the exit status.
func run(args []string, signals <-chan os.Signal, messages io.Writer) int {
	o, err := parse(args, messages)
	if err != nil {
		fmt.Fprintln(messages, "shardhost:", err)
		return exitBad
	}
	slog.SetDefault(slog.New(slog.NewJSONHandler(messages, nil)))
	h, err := start(context.Background(), o)
	if err != nil {
		slog.Error("shardhost: cannot start", "error", err)
		return exitFailed
	}
	select {
	case <-h.provider.Downed():
	case got := <-signals:
		err = h.leave(got == syscall.SIGTERM)
	}
	if h.provider.Reason() != "" { // perhaps while it was leaving
		<-h.provider.Done()
		return downing.ExitDowned
	}
	if err != nil {
		slog.Error("shardhost: leaving", "error", err)
		return exitFailed
	}
	return exitLeft
}
