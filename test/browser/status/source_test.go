package status_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// source is a member whose status a test sets. What its page shows follows from that alone.
type source struct {
	mu      sync.Mutex
	status  downing.Status
	health  web.Health
	config  web.Config
	journal web.Journal
}

func (s *source) Status() downing.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Members = slices.Clone(status.Members)
	return status
}

func (s *source) Health() web.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health
}

func (s *source) Config() web.Config { return s.config }

func (s *source) Journal() []web.Entry { return s.journal.Entries() }

// set changes what is shown.
func (s *source) set(change func()) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	return s
}

// happened adds to the journal.
func (s *source) happened(kind, text string) *source {
	s.journal.Record(downing.Occurrence{At: time.Now(), Member: "n1", Kind: kind, Text: text})
	return s
}

func uid(name string) string { return name + "#k3v9xq2m" }

// whole is a cluster of n1 … nN that is seen from n1; nothing is wrong with it.
func whole(n int) *source {
	s := &source{
		health: web.Health{Live: web.Check{OK: true}, Ready: web.Check{OK: true}},
		config: web.Config{
			YAML: "system: payments\nsplit-brain-resolver:\n  active-strategy: lease-majority\n  stable-after: 20s\nserf:\n" +
				"  rpc: 127.0.0.1:7373\n  rpc-auth-key: '***'\n",
			Timings: [][]string{
				{"Serf notices", "5.8s to 13.1s", "8.2s to 2m4s"},
				{"both sides up after the verdict", "at most 100ms watching the lease"},
			},
		},
		status: downing.Status{
			System: "payments", Member: "n1", Incarnation: uid("n1"), State: sbr.StateUp, Leader: "n1",
			Responsible: true,
			Lease:       downing.LeaseStatus{Kind: "kubernetes", Name: "payments-sbr", Store: "5d1e"}, ConfigDigest: "7f3a9c1e",
			Version: "v0.4.0",
		},
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		s.status.Members = append(s.status.Members, downing.MemberStatus{
			Name: name, Incarnation: uid(name), Status: "up", Reachable: true, Roles: []string{"web"},
			Address: fmt.Sprintf("10.0.%d.%d:7946", (i+1)/250, (i+1)%250),
		})
	}
	return s.happened("armed", fmt.Sprintf("armed: %d members, nothing changed for 5s", n))
}

// lose makes the last k of the members unreachable; every member on this side says so.
func (s *source) lose(k int) *source {
	rest := len(s.status.Members) - k
	for i := range s.status.Members[rest:] {
		m := &s.status.Members[rest+i]
		m.Reachable = false
		s.status.Unreachable = append(s.status.Unreachable, m.Name)
		for _, observer := range s.status.Members[:min(rest, 5)] {
			s.status.Reports = append(s.status.Reports, downing.ReportStatus{Observer: observer.Name, Subject: m.Name})
		}
		s.happened(downing.OccurredUnreachable, m.Name+" is unreachable")
	}
	s.health.Ready = web.Check{Reason: "a partition may be under way"}
	now := time.Now()
	s.status.State, s.status.SuspendedSince, s.status.SuspendedBecause = sbr.StateSuspended,
		&now, s.status.Unreachable[0]+" is unreachable"
	return s.happened(downing.OccurredSuspended, "suspended: a partition may be under way")
}

// due sets when a decision is due, and since when the partition goes on.
func (s *source) due(ago, in time.Duration) *source {
	since, at := time.Now().Add(-ago), time.Now().Add(in)
	s.status.SuspendedSince, s.status.Deadline = &since, &at
	return s
}

// waits is a member that asks for the lease.
func (s *source) waits() *source {
	s.status.State, s.status.Lease.Holder, s.status.Lease.Token = sbr.StateWaiting, uid("n4"), 3
	return s.happened(downing.OccurredAsking, "asking for the lease payments-sbr, attempt 1")
}

// decided is what a verdict leaves behind: of n members the last k were downed.
func decided(n, k int) *source {
	s := whole(n).lose(k)
	s.status.State, s.status.SuspendedSince, s.status.SuspendedBecause, s.status.Reports = sbr.StateUp,
		nil, "", nil
	s.health.Ready = web.Check{OK: true}
	v := &s.status.Verdict
	v.Token, v.DecidedBy, v.Reason = 4, uid("n1"),
		fmt.Sprintf("%d of %d counted members are reachable, a majority", n-k, n)
	for i := range s.status.Members {
		m := &s.status.Members[i]
		if m.Reachable {
			v.Survivors = append(v.Survivors, m.Incarnation)
			continue
		}
		m.Status = "down"
		v.Down = append(v.Down, m.Incarnation)
	}
	s.status.Lease.Holder, s.status.Lease.Token = uid("n1"), 4
	return s.happened(downing.OccurredVerdict, "verdict 4 by n1: "+v.Reason).happened(downing.OccurredResumed,
		"resumed")
}

// lost is the view of a member that the verdict of the others has downed.
func lost() *source {
	s := decided(5, 2)
	s.status.Member, s.status.Incarnation, s.status.State, s.status.Leader, s.status.Responsible = "n5",
		uid("n5"), sbr.StateDown, "n4", false
	for i := range s.status.Members {
		m := &s.status.Members[i]
		m.Status, m.Reachable = "up", i >= 3
	}
	s.status.Unreachable = []string{"n1", "n2", "n3"}
	why := "down: verdict 4 by n1 does not list this member among its survivors"
	s.health = web.Health{Live: web.Check{Reason: why}, Ready: web.Check{Reason: why}}
	return s.happened(downing.OccurredDown, why)
}

// serve serves a source at an address. It returns where, and what ends it.
func serve(t *testing.T, o web.Options) (url string, stop func()) {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	s, err := web.New(o)
	require.NoError(t, err)
	// it ends after what the test has opened
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(stop)
	return "http://" + s.Addr().String() + "/", stop
}

// get asks for a page as a program does.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Body.Close() })
	return a
}
