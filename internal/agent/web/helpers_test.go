package web

import (
	"context"
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

// whole is a cluster of n1 … nN that is seen from n1; nothing is wrong with it.
func whole(n int) *fake {
	f := &fake{
		journal: new(Journal),
		health:  Health{Live: Check{OK: true}, Ready: Check{OK: true}},
		config: Config{YAML: "system: payments\n",
			Timings: [][]string{{"Serf notices", "5.8s to 13.1s", "8.2s to 2m4s"}}},
	}
	f.status = downing.Status{
		System: "payments", Member: "n1", Incarnation: "n1#k3v9xq2m", State: sbr.StateUp, Unreachable: []string{},
		Leader: "n1", Responsible: true,
		Lease: downing.LeaseStatus{Kind: "kubernetes", Name: "payments-sbr"}, ConfigDigest: "7f3a9c1e",
		StableAfter: "20s", Version: "v0.4.0",
		Verdict: downing.VerdictStatus{Survivors: []string{}, Down: []string{}}, Reports: []downing.ReportStatus{},
		Members: []downing.MemberStatus{},
	}
	for i := range n {
		name := fmt.Sprintf("n%d", i+1)
		f.status.Members = append(f.status.Members, downing.MemberStatus{
			Name: name, Incarnation: name + "#k3v9xq2m", Status: "up", Reachable: true,
			Address: fmt.Sprintf("10.0.%d.%d:7946", (i+1)/250, (i+1)%250), Roles: []string{"web"},
		})
	}
	f.happened(noon.Add(-90*time.Second), "armed", fmt.Sprintf("armed: %d members, nothing changed for 5s", n))
	return f
}

// noon is when the histories of tests take place.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

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
	// the test ends it, after what it has opened
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
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
