package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// work runs one shard. Members are known to the ledger by their incarnations: two of one host that had the
// same token would be seen.
func (h *host) work(ctx context.Context, s *sharding.Shard) error {
	stats := ledger.Writer{
		Client: ledger.Client{URL: h.options.ledger, HTTP: h.client},
		Entry:  ledger.Entry{Resource: h.options.kind + "-" + s.Name(), Member: h.provider.Status().Incarnation, Run: rand.Text()},
		Token:  s.Token(), Every: h.options.every, Check: s.Check,
	}.Run(ctx)
	slog.Info("shardhost: a run has ended", "shard", s.Name(), "token", s.Token(), "cause", context.Cause(ctx), "check", s.Check(),
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
