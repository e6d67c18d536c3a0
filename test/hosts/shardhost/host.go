package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// leaveTime bounds the end in good order.
const leaveTime = 25 * time.Second

// joinEvery is the time between two tries to find others: parts of a cluster that started apart find each
// other by nothing else.
const joinEvery = time.Second

// host is the application.
type host struct {
	options  options
	provider *downing.Provider
	serf     *serf.Serf
	client   *http.Client // of the ledger

	mu     sync.Mutex
	shards *sharding.Manager
}

// start takes part in the cluster.
func start(ctx context.Context, o options) (*host, error) {
	cfg, err := downing.LoadConfig(o.config)
	if err != nil {
		return nil, err
	}
	h := &host{options: o, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.shards}}}
	if h.provider, err = downing.New(cfg); err != nil {
		return nil, err
	}
	h.provider.OnSuspend(func(reason string) { h.note("suspend", reason) })
	h.provider.OnResume(func(reason string) { h.note("resume", reason) })
	h.provider.OnDown(func(reason string) { h.note("down", reason) })
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, err
	}
	go func() { slog.Error("shardhost: the page is gone", "error", http.Serve(listener, h.page())) }()
	conf, err := h.serfConfig()
	if err != nil {
		return nil, err
	}
	if err := h.provider.Prepare(ctx, conf); err != nil {
		return nil, err
	}
	if h.serf, err = serf.Create(conf); err != nil {
		return nil, err
	}
	if err := h.provider.Start(ctx, h.serf); err != nil {
		return nil, err
	}
	if len(o.join) > 0 {
		go h.keepJoining()
	}
	return h, h.open(ctx)
}

func (h *host) serfConfig() (*serf.Config, error) {
	conf := serf.DefaultConfig()
	conf.NodeName = h.options.node
	address, port, err := net.SplitHostPort(h.options.bind)
	if err != nil {
		return nil, err
	}
	m := conf.MemberlistConfig
	m.Name, m.BindAddr = h.options.node, address
	if m.BindPort, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	m.AdvertiseAddr, m.AdvertisePort = m.BindAddr, m.BindPort
	conf.Logger = log.New(withoutDebug{slog.NewLogLogger(slog.Default().Handler(), slog.LevelInfo).Writer()},
		"", 0)
	m.Logger = conf.Logger
	return conf, nil
}

// withoutDebug leaves out what Serf and memberlist say about each message.
type withoutDebug struct{ io.Writer }

// Write implements io.Writer.
func (w withoutDebug) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("[DEBUG]")) {
		return len(line), nil
	}
	return w.Writer.Write(line)
}

// keepJoining joins until there are others, and again whenever there are none.
func (h *host) keepJoining() {
	for h.serf.State() == serf.SerfAlive {
		if len(h.provider.Peers().List) < 2 {
			_, _ = h.serf.Join(h.options.join, true) // it is tried again
		}
		time.Sleep(joinEvery)
	}
}

// open begins to run shards.
func (h *host) open(ctx context.Context) error {
	cfg := sharding.Config{Type: h.options.kind, Shards: sharding.Numbered(h.options.shards), Run: h.work,
		LeaseRetryInterval: time.Second}
	if d := h.provider.Config(); h.options.leases {
		cfg.UseLease, cfg.LeaseDecode = d.LeaseImplementation, d.LeaseDecode
	}
	m, err := sharding.New(h.provider, cfg)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.shards = m
	h.mu.Unlock()
	return m.Start(ctx)
}

func (h *host) manager() *sharding.Manager {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shards
}

// drain hands everything over, and takes part again.
func (h *host) drain(ctx context.Context) error {
	if err := h.manager().Stop(ctx); err != nil {
		return err
	}
	return h.open(ctx)
}

// leave ends this member's part in good order; without inPeace nobody stops the manager of the shards before.
func (h *host) leave(inPeace bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	var err error
	if inPeace {
		err = h.manager().Stop(ctx)
	}
	err = errors.Join(err, h.serf.Leave())
	if !inPeace {
		select {
		case <-h.manager().Done():
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("shards run on: %w", ctx.Err()))
		}
	}
	return errors.Join(err, h.provider.Stop(ctx), h.serf.Shutdown())
}

// note adds a line to the file of what became of the member: event, time, incarnation, token of the newest
// verdict, reason.
func (h *host) note(event, reason string) {
	if h.options.hooks == "" {
		return
	}
	s, now := h.provider.Status(), time.Now()
	f, err := os.OpenFile(h.options.hooks, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\t%d.%09d\t%s\t%d\t%s\n", event, now.Unix(), now.Nanosecond(), s.Incarnation,
			s.Verdict.Token, reason)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		slog.Error("shardhost: nothing was noted", "event", event, "error", err)
	}
}

// work runs one shard. Members are known to the ledger by their incarnations: two of one host that had the
// same token would be seen.
func (h *host) work(ctx context.Context, s *sharding.Shard) error {
	stats := ledger.Writer{
		Client: ledger.Client{URL: h.options.ledger, HTTP: h.client},
		Entry: ledger.Entry{Resource: h.options.kind + "-" + s.Name(), Member: h.provider.Status().Incarnation,
			Run: rand.Text()},
		Token: s.Token(), Every: h.options.every, Check: s.Check,
	}.Run(ctx)
	slog.Info("shardhost: a run has ended", "shard", s.Name(), "token", s.Token(), "cause", context.Cause(ctx),
		"check", s.Check(),
		"accepted", stats.Accepted, "refused", stats.Refused, "failed", stats.Failed, "last", stats.Last)
	return nil
}

func (h *host) page() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s := h.provider.Status()
		if s.State == "" { // it waits for the lease
			s.State = sbr.StateArming
		}
		answer(w, s)
	})
	mux.HandleFunc("GET /healthz/ready", func(w http.ResponseWriter, _ *http.Request) {
		if s := h.provider.Status(); s.State != sbr.StateUp {
			http.Error(w, string(s.State)+": "+s.SuspendedBecause, http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /shards", func(w http.ResponseWriter, _ *http.Request) {
		m := h.manager()
		if m == nil {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		answer(w, m.Table())
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, r *http.Request) {
		if err := h.drain(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

func answer(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what) // the client has gone
}
