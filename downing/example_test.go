package downing_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hashicorp/serf/serf"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// A service that embeds Serf is protected by five more lines, marked below. A real one has its lease in
// Kubernetes (lease/kubernetes) instead of in memory, and its own network.
func Example() {
	ctx := context.Background()
	conf := serf.DefaultConfig()
	conf.Init()
	conf.NodeName = "n1"
	conf.LeavePropagateDelay = 0 // nobody is there to hear it
	inMemory(conf)

	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store = "payments", leasetest.NewMemory().View("n1")
	cfg.Logger = slog.New(slog.DiscardHandler)

	p, err := downing.New(cfg)     // 1
	check(err)                     //
	check(p.Prepare(ctx, conf))    // 2: before the node exists
	node, err := serf.Create(conf) //    as ever
	check(err)                     //
	check(p.Start(ctx, node))      // 3
	p.OnDown(func(reason string) { // 4: stop working; the process ends with status 70 after cfg.Grace
		fmt.Println("down:", reason)
	})

	fmt.Println(p.Status().Member, "is", p.Status().State)

	check(node.Leave())
	check(node.Shutdown())
	check(p.Stop(ctx)) // 5
	fmt.Println("left, which is no downing:", p.Reason() == "")
	// Output:
	// n1 is arming
	// left, which is no downing: true
}

func inMemory(conf *serf.Config) {
	transport, err := memnet.New(memnet.Config{}).Transport(conf.NodeName)
	check(err)
	conf.MemberlistConfig.Transport = transport
	conf.LogOutput, conf.MemberlistConfig.LogOutput = discard{}, discard{}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// With TraceIDs all members that a verdict concerns share one trace.
func ExampleTraceIDs() {
	exporter := tracetest.NewNoopExporter() // otlptracehttp.New(ctx), for instance
	cfg := downing.DefaultConfig()
	cfg.Tracer = trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithIDGenerator(downing.TraceIDs{}))
}
