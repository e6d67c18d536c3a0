package web

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// noLeaks fails the test if it leaves a goroutine behind.
func noLeaks(t *testing.T) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		goleak.VerifyNone(t, ignore)
	})
}

// fake is a Source that shows what a test sets.
type fake struct {
	mu      sync.Mutex
	status  downing.Status
	health  Health
	config  Config
	journal *Journal
	asked   int
}

func (f *fake) Status() downing.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	s := f.status
	s.Members = slices.Clone(s.Members)
	return s
}

func (f *fake) Health() Health {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health
}

func (f *fake) Config() Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config
}

func (f *fake) Journal() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.journal.Entries()
}

// set changes what is shown.
func (f *fake) set(change func(*fake)) *fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
	return f
}

func (f *fake) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// happened adds to the history.
func (f *fake) happened(at time.Time, kind, text string) *fake {
	f.journal.Record(downing.Occurrence{At: at, Member: "n1", Kind: kind, Text: text})
	return f
}

func uid(name string) string { return name + "#k3v9xq2m" }

// whole is a cluster of n1 … nN that is seen from n1; nothing is wrong with it.
func whole(n int) *fake {
	f := &fake{
		journal: new(Journal),
		health:  Health{Live: Check{OK: true}, Ready: Check{OK: true}},
		config: Config{
			YAML: "system: payments\nsplit-brain-resolver:\n  active-strategy: lease-majority\n  stable-after: 20s\nserf:\n  rpc: 127.0.0.1:7373\n  rpc-auth-key: '***'\n",
			Timings: [][]string{
				{"Serf notices", "5.8s to 13.1s", "8.2s to 2m4s"},
				{"own probes notice", "3s to 5.5s", "3s to 5.5s"},
				{"both sides up after the verdict", "at most 100ms watching the lease"},
			},
		},
	}
	f.status = downing.Status{
		System: "payments", Member: "n1", Incarnation: uid("n1"), State: sbr.StateUp, Unreachable: []string{}, Leader: "n1", Responsible: true,
		Lease: downing.LeaseStatus{Kind: "kubernetes", Name: "payments-sbr"}, ConfigDigest: "7f3a9c1e", StableAfter: "20s", Version: "v0.4.0",
		Verdict: downing.VerdictStatus{Survivors: []string{}, Down: []string{}}, Reports: []downing.ReportStatus{}, Members: []downing.MemberStatus{},
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		f.status.Members = append(f.status.Members, downing.MemberStatus{
			Name: name, Incarnation: uid(name), Status: "up", Reachable: true, Address: fmt.Sprintf("10.0.%d.%d:7946", (i+1)/250, (i+1)%250), Roles: []string{"web"},
		})
	}
	f.happened(noon.Add(-90*time.Second), "armed", fmt.Sprintf("armed: %d members, nothing changed for 5s", n))
	return f
}

// noon is when the histories of tests take place.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// lose makes the last of the members unreachable; every member on this side says so.
func (f *fake) lose(k int) *fake {
	n := len(f.status.Members)
	for i := n - k; i < n; i++ {
		m := &f.status.Members[i]
		m.Reachable = false
		f.status.Unreachable = append(f.status.Unreachable, m.Name)
		for j := range min(n-k, 5) {
			f.status.Reports = append(f.status.Reports, downing.ReportStatus{Observer: f.status.Members[(i+j)%(n-k)].Name, Subject: m.Name})
		}
		f.happened(noon.Add(time.Duration(i)*time.Second/10), downing.OccurredUnreachable, m.Name+" is unreachable")
	}
	f.health.Ready = Check{Reason: "a partition may be under way"}
	f.status.State, f.status.SuspendedBecause = sbr.StateSuspended, f.status.Unreachable[0]+" is unreachable"
	since := noon
	f.status.SuspendedSince = &since
	return f.happened(noon.Add(time.Second), downing.OccurredSuspended, "suspended: a partition may be under way")
}

// deadline sets when a decision is due and since when this goes on.
func (f *fake) deadline(since, at time.Time) *fake {
	f.status.SuspendedSince, f.status.Deadline = &since, &at
	return f
}

// decided is what a verdict leaves behind: of n members the last k were downed.
func decided(n, k int) *fake {
	f := whole(n).lose(k)
	f.status.State, f.status.SuspendedSince, f.status.SuspendedBecause, f.status.Reports = sbr.StateUp, nil, "", []downing.ReportStatus{}
	f.health.Ready = Check{OK: true}
	v := &f.status.Verdict
	v.Token, v.DecidedBy, v.Reason = 4, uid("n1"), fmt.Sprintf("%d of %d counted members are reachable, a majority", n-k, n)
	for i := range f.status.Members {
		m := &f.status.Members[i]
		if m.Reachable {
			v.Survivors = append(v.Survivors, m.Incarnation)
			continue
		}
		m.Status = "down"
		v.Down = append(v.Down, m.Incarnation)
	}
	f.status.Lease.Holder, f.status.Lease.Token = uid("n1"), 4
	f.happened(noon.Add(20*time.Second), string(sbr.TopicDecision), "acquire-lease-and-down-unreachable: "+v.Reason)
	f.happened(noon.Add(20200*time.Millisecond), downing.OccurredGranted, "holds the lease payments-sbr, token 4")
	f.happened(noon.Add(20300*time.Millisecond), downing.OccurredVerdict, fmt.Sprintf("verdict 4 by n1: %d survivors, %d down: %s", n-k, k, v.Reason))
	return f.happened(noon.Add(21*time.Second), downing.OccurredResumed, "resumed: the partition is resolved")
}

// served serves until the test ends, and returns the address with http://.
func served(t *testing.T, o Options) (s *Server, url string) {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the test ends it, after what it has opened
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	scheme := "http://"
	if o.TLSCert != "" {
		scheme = "https://"
	}
	return s, scheme + s.Addr().String()
}

// get asks for a path, with pairs of header names and values.
func get(t *testing.T, method, url string, header ...string) (status int, body string, h http.Header) {
	t.Helper()
	return send(t, method, url, "", header...)
}

// posted sends a request to down a member.
func posted(t *testing.T, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	status, answer, _ = send(t, http.MethodPost, url, body, header...)
	return status, answer
}

func send(t *testing.T, method, url, body string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Add(header[i], header[i+1])
	}
	if body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, string(text), a.Header
}
