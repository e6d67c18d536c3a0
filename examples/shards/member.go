package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/file"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// shards is how many there are. It never changes.
const shards = 64

// member is one process of the service.
type member struct {
	options
	provider    *downing.Provider
	node        *serf.Serf
	shards      *sharding.Manager
	counters    counters
	front, back *http.Server
}

// start takes part in the cluster. What was started before an error is left to the end of the process.
func start(ctx context.Context, o options) (*member, error) {
	m := &member{options: o}
	back, err := net.Listen("tcp", o.back)
	if err != nil {
		return nil, err
	}
	front, err := net.Listen("tcp", o.front)
	if err != nil {
		return nil, err
	}
	m.options.front, m.options.back = front.Addr().String(), back.Addr().String()
	if err := m.joinCluster(ctx); err != nil {
		return nil, err
	}
	cfg := sharding.DefaultConfig()
	cfg.Type, cfg.Shards, cfg.Endpoint = "counters", sharding.Numbered(shards), "http://"+m.options.back
	cfg.Run, cfg.MaxMoves = m.counters.run, 4
	if m.shards, err = sharding.New(m.provider, cfg); err != nil {
		return nil, err
	}
	if err := m.shards.Start(ctx); err != nil {
		return nil, err
	}
	m.back = serve(back, m.counters.handler())
	m.front = serve(front, m.router())
	return m, nil
}

// joinCluster starts the Serf node, and what protects its cluster from a partition.
func (m *member) joinCluster(ctx context.Context) error {
	store, err := file.New(file.Config{Path: m.lease})
	if err != nil {
		return err
	}
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store, cfg.Resolver.StableAfter = "counters", store, m.stableAfter
	if m.provider, err = downing.New(cfg); err != nil {
		return err
	}
	conf, err := m.serfConfig()
	if err != nil {
		return err
	}
	if err := m.provider.Prepare(ctx, conf); err != nil {
		return err
	}
	if m.node, err = serf.Create(conf); err != nil {
		return err
	}
	if err := m.provider.Start(ctx, m.node); err != nil {
		return err
	}
	if len(m.join) > 0 {
		_, err = m.node.Join(m.join, true)
	}
	return err
}

func (m *member) serfConfig() (*serf.Config, error) {
	conf := serf.DefaultConfig()
	conf.NodeName = m.name
	conf.LogOutput, conf.MemberlistConfig.LogOutput = io.Discard, io.Discard
	// A member that leaves waits for so long, twice, until its leave has been passed on: in vain, when all
	// leave at once.
	conf.BroadcastTimeout = 500 * time.Millisecond
	host, port, err := net.SplitHostPort(m.bind)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("the port of %s: %w", m.bind, err)
	}
	conf.MemberlistConfig.BindAddr, conf.MemberlistConfig.BindPort = host, n
	return conf, nil
}

func serve(l net.Listener, h http.Handler) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the server has ended", "error", err)
		}
	}()
	return s
}

// router takes requests of clients, and sends each to the member that runs its shard. It
// tells where the shards are as well.
func (m *member) router() http.Handler {
	to := sharding.NewTransport(m.shards, func(r *http.Request) string { return shardOf(r.URL.Path) })
	mux := http.NewServeMux()
	proxy := &httputil.ReverseProxy{Transport: to, Rewrite: func(*httputil.ProxyRequest) {}}
	mux.Handle("POST /count/{key}", proxy)
	mux.Handle("GET /shards", sharding.Handler(m.shards)) // for sbr shards, and for browsers
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := m.shards.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// stop leaves as planned: first no more requests of clients, then no more shards, then no more member.
func (m *member) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	errs := []error{m.front.Shutdown(ctx), m.shards.Stop(ctx)}
	lingered := time.After(m.linger)
	errs = append(errs, m.node.Leave())
	select { // some may not have heard yet where the shards are: they are told that they are not here
	case <-lingered:
	case <-ctx.Done():
	}
	errs = append(errs, m.back.Shutdown(ctx), m.provider.Stop(ctx), m.node.Shutdown())
	return errors.Join(errs...)
}
