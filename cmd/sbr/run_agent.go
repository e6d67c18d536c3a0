package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/guard"
)

// attachFlags are those of `sbr run --singleton`.
type attachFlags struct {
	singleton, agent, endpoint, tokenFile, caFile string
}

func (a *attachFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&a.singleton, "singleton", "", "run CMD as this singleton of the cluster, through the agent of this machine, instead of --lease")
	flags.StringVar(&a.agent, "agent", "", "where that agent listens (default: the configuration's http.listen, $SBR_URL, or "+defaultURL+")")
	flags.StringVar(&a.endpoint, "endpoint", "", "where CMD is reached when it runs here, for those who look for the singleton")
	flags.StringVar(&a.tokenFile, "token-file", "", "file with the token that the agent wants")
	flags.StringVar(&a.caFile, "ca-file", "", "file with the certificates to trust, PEM (default: those of this machine)")
}

// problems are those of the flags that are for either way alone.
func (r *runFlags) problems(problem func(is bool, format string, args ...any)) {
	if r.singleton == "" {
		problem(r.lease == "", "where is the one place decided? give --singleton NAME, --lease file:PATH or --lease kubernetes:NAME")
		problem(r.agent != "" || r.endpoint != "" || r.tokenFile != "" || r.caFile != "", "--agent, --endpoint, --token-file and --ca-file are for --singleton")
		return
	}
	problem(r.lease != "", "--lease and --singleton: give one of them; whether a singleton needs a lease is said in the agents' configuration (singleton.use-lease)")
	problem(r.kubeconfig != "" || r.context != "" || r.namespace != "" || r.heartbeatTimeout != 0 || r.interval != 0 || r.operation != 0,
		"the flags of the lease are not for --singleton: its lease is in the agents' configuration (singleton.use-lease)")
	problem(r.stop > attach.MaxStopTimeout, "--stop-timeout %v: at most %v can be waited for", r.stop, attach.MaxStopTimeout)
}

// attached runs CMD whenever the agent of this machine says so.
func (r *runFlags) attached(ctx context.Context, path string, log *slog.Logger) error {
	at := agentFlags{url: r.agent, file: r.file, tokenFile: r.tokenFile, caFile: r.caFile, timeout: time.Minute}
	if at.url != "" && !strings.Contains(at.url, "://") {
		at.url = "http://" + at.url
	}
	client, err := at.client()
	if err != nil {
		return err
	}
	g := guard.OverAgent(guard.AgentOptions{
		URL: client.url, Token: client.token, HTTP: client.http, Singleton: r.singleton, Endpoint: r.endpoint, StopTimeout: r.stop,
		Lock: lockPath(client.url, r.singleton), Once: r.once, Version: downing.Version(), Log: log,
	})
	defer g.Close()
	return r.guarded(ctx, path, g, log)
}

// lockPath is one file for each singleton of each agent. It is in a folder that every process of this user has.
func lockPath(url, singleton string) string {
	sum := sha256.Sum256([]byte(url + "\n" + singleton))
	return filepath.Join(os.TempDir(), fmt.Sprintf("sbr-run-%d-%s.lock", os.Getuid(), hex.EncodeToString(sum[:8])))
}
