package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/agent"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

const agentVerbHelp = `Agent protects one node of a Serf cluster. It stands beside a stock serf agent and reaches it over its RPC port (serf.rpc), or it is a node
itself (serf.node, bind, join …). When the cluster is cut, exactly one side stays up; on the other side the agent runs hooks.on-down, signals hooks.pid-file,
makes its node leave and ends with status 70. A supervisor starts it again; it comes back as a new member.

It shows what it sees at http.listen: a page, /status, /metrics, /healthz/live and /healthz/ready. Traces go where the OTEL_ variables say. SIGTERM and SIGINT leave
in peace (serf.leave-on-terminate); a second one ends at once.

What is missing outside of the configuration (the store, rights, a wrong RPC key, a port in use, a file that cannot be read) is said in the log and at
/healthz/ready, and waited for.

Exit statuses: 0 left gracefully, 1 internal error, 2 bad usage or configuration, 70 downed.`

func newAgent(s streams) *cobra.Command {
	var path string
	var bootstrap uint64
	c := &cobra.Command{
		Use: "agent --config FILE", Short: "protect a Serf node, a stock agent's or its own", Long: agentVerbHelp,
		Args:    cobra.NoArgs,
		Example: "  sbr agent --config /etc/sbr/sbr.yaml",
	}
	flags := c.Flags()
	addConfig(flags, &path, "")
	flags.Uint64Var(&bootstrap, "bootstrap", 0,
		"the token of the last verdict, all of whose survivors have ended for good: "+
			"begin a new cluster, on one member, unless one of them answers")
	log := addLog(c, s)
	c.RunE = verb(func() error {
		if path == "" {
			return badInput{errors.New("which configuration? give --config sbr.yaml")}
		}
		if c.Flags().Changed("bootstrap") && bootstrap == 0 {
			return badInput{errors.New("--bootstrap: give the token of the last verdict, " +
				"as the log of a member that waits and sbr lease show name it")}
		}
		f, err := config.Load(path)
		if err == nil {
			err = checkServers(path, f)
		}
		if err != nil {
			return badInput{err}
		}
		// what libraries write by package log: they return the error as well
		slog.SetLogLoggerLevel(slog.LevelDebug)
		slog.SetDefault(log())
		return runAgent(c.Context(), agent.Options{File: f, Logger: slog.Default(), Bootstrap: bootstrap})
	})
	return c
}

// runAgent runs the agent until it is done. Its status, where it is not that of an error, is one too.
func runAgent(ctx context.Context, o agent.Options) error {
	ctx, stop := untilTerminated(ctx)
	defer stop()
	status, err := agent.Run(ctx, o)
	switch {
	case errors.As(err, new(agent.Problem)):
		return badInput{err}
	case err != nil:
		return err
	case status != 0:
		return exit{status: status}
	default:
		return nil
	}
}

// untilTerminated returns a context that ends with the first SIGTERM or SIGINT; the second one ends the
// process as it always does. A hangup of the terminal is no reason to leave a cluster.
func untilTerminated(ctx context.Context) (context.Context, context.CancelFunc) {
	hangups := make(chan os.Signal, 1) // not ignored: what is started meanwhile would ignore them, too
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, func() {
		stop()
		signal.Stop(hangups)
	}
}

// addLog gives a command the flags of the log, and returns what makes it of them. It goes to the error
// stream.
func addLog(c *cobra.Command, s streams) func() *slog.Logger {
	format := addWord(c, "log-format", "", formatText, "how log lines are written", formatText, formatJSON)
	level := addWord(c, "log-level", "", "info", "from which level on", "debug", "info", "warn", "error")
	return func() *slog.Logger {
		var from slog.Level
		_ = from.UnmarshalText([]byte(*level)) // all known words are its own
		o := &slog.HandlerOptions{Level: from}
		if *format == formatJSON {
			return slog.New(slog.NewJSONHandler(s.err, o))
		}
		return slog.New(slog.NewTextHandler(s.err, o))
	}
}
