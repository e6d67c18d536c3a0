package clustertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A round has so many members, and so many things happen to them.
const (
	roundMembers = 5
	roundThings  = 3
)

// Round is one cluster to which things happen, and a ledger of what its load writes.
type Round struct {
	*Cluster
	Trouble *Trouble

	load   Load
	server *ledger.Server
}

// Load is what runs on the members of a round, and writes to the ledger while it may.
type Load struct {
	// Start starts it on a member that is admitted. Stop ends it there in good order, before the member
	// leaves.
	Start func(name string)
	Stop  func(ctx context.Context, name string) error
	// Settled reports whether all of it runs that has to run.
	Settled func() bool
	// Favourite is the member to which things happen most often; empty: none.
	Favourite func() string
	// Stores are a member's stores other than that of the verdicts.
	Stores func(name string) []*leasetest.Faulty
	// Dump logs where it stands, if a round fails.
	Dump func()
}

// Run is a run of the load: its token, and whether it may still write.
type Run interface {
	Token() uint64
	Check() error
}

// Work writes to a resource every so often, until ctx ends or the run may not any more. Between the look and
// the write it may be paused for any time: that is what a fence is for.
func (r *Round) Work(ctx context.Context, member, resource string, every time.Duration, run Run) error {
	ledger.Writer{
		Client: r.client(member), Entry: ledger.Entry{Resource: resource, Member: member,
			Run: strconv.FormatUint(run.Token(), 10)},
		Token: run.Token(), Every: every, Check: run.Check,
	}.Run(ctx) // the ledger says what became of it
	return nil
}

// client is a member's way to the ledger.
func (r *Round) client(member string) ledger.Client {
	return r.reach(func() { r.Trouble.Pass(member) })
}

func (r *Round) reach(pass func()) ledger.Client {
	return ledger.Client{URL: "http://ledger", HTTP: &http.Client{Transport: direct{r.server, pass}}}
}

// direct calls a handler without a network in between. A member that stands still sends later, and gives up
// nothing.
type direct struct {
	handler http.Handler
	pass    func()
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	d.pass()
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
	return w.Result(), nil
}

// PlayRounds plays rounds of partitions, pauses, crashes, rolling updates and stores that are away. In each,
// no write of an older run may be accepted after one of a newer run; what would have overlapped without a
// fence is logged. There are few rounds, or as many as SBR_ROUNDS says; "7-9" are those of these seeds.
func PlayRounds(t *testing.T, few uint64, load func(r *Round) Load) {
	t.Helper()
	first, end, err := seeds(os.Getenv("SBR_ROUNDS"), few)
	require.NoError(t, err)
	var overlaps, refused int
	var longest time.Duration
	var planned, unplanned Times
	begun := time.Now()
	for seed := first; seed < end; seed++ {
		report, log := play(t, seed, load)
		if n := seed - first + 1; n%10 == 0 {
			t.Logf("%d of %d rounds in %v", n, end-first, time.Since(begun).Round(time.Second))
		}
		require.True(t, report.Clean(), "seed %d: %v\n%+v %+v", seed, log, report.Violations, report.Shared)
		overlaps += len(report.Overlaps)
		refused += report.Refused
		longest = max(longest, report.Overlap.Max)
		for _, c := range report.Changes {
			if c.Planned {
				planned = append(planned, c.Gap)
			} else {
				unplanned = append(unplanned, c.Gap)
			}
		}
	}
	t.Logf("rounds of the seeds %d to %d; without the fence %d overlaps, the longest %v; %d writes refused; gaps at changes of owner: planned %v; unplanned %v", first, end-1,
		overlaps, longest, refused, planned, unplanned)
}

// play plays a round in virtual time, and returns what the ledger says.
func play(t *testing.T, seed uint64, load func(r *Round) Load) (report ledger.Report, log []string) {
	Troubled(t, roundMembers, seed, func(t *testing.T, c *Cluster, trouble *Trouble) {
		server, err := ledger.Open(filepath.Join(t.TempDir(), "ledger"))
		require.NoError(t, err)
		defer func() { _ = server.Close() }()
		r := &Round{Cluster: c, Trouble: trouble, server: server}
		r.load = load(r)
		trouble.Restart, trouble.Settle, trouble.Favourite, trouble.Stores = r.restart, r.settle, r.load.Favourite,
			r.load.Stores
		names := c.Form(roundMembers)
		for _, name := range names {
			r.load.Start(name)
		}
		defer func() {
			for _, name := range names {
				r.stop(name)
			}
		}()
		defer func() {
			trouble.End()
			log = trouble.Log
		}()
		r.settle()
		for range roundThings {
			trouble.Happen()
		}
		lines, err := r.reach(func() {}).Lines(t.Context()) // no member's way: each may stand still
		require.NoError(t, err)
		report = ledger.Analyse(lines)
	})
	return report, log
}

func (r *Round) stop(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(r.t, r.load.Stop(ctx, name))
}

// restart ends a member in good order, and starts it again as another incarnation.
func (r *Round) restart(name string) {
	r.stop(name)
	require.NoError(r.t, r.Member(name).Leave())
	r.Start(name)
	r.Eventually(2*time.Minute, name+" is not admitted", func() bool {
		return r.Member(name).Provider.Peers().State != sbr.StateArming
	})
	r.load.Start(name)
}

// settle waits until all of the load runs.
func (r *Round) settle() {
	defer func() {
		if r.t.Failed() {
			r.dump()
		}
	}()
	r.Eventually(3*time.Minute, "the load does not run again", r.load.Settled)
	time.Sleep(5 * time.Second)
}

func (r *Round) dump() {
	for _, line := range r.Trouble.Log {
		r.t.Log(line)
	}
	for _, m := range r.Members() {
		p := m.Provider.Peers()
		r.t.Logf("%s: paused %v, down %v, %s", m.Name, r.Trouble.Paused(m.Name), m.Down(), p.State)
		for i := range p.List {
			q := &p.List[i]
			r.t.Logf("  %s %s unreachable=%v serves=%v", q.ID, q.Status, q.Unreachable, q.Serves)
		}
	}
	r.load.Dump()
}

// seeds reads how many seeds are played, from 0, or which: "5", "7-9". end is the one after the last.
func seeds(text string, few uint64) (first, end uint64, err error) {
	end = few
	switch {
	case strings.Contains(text, "-"):
		_, err = fmt.Sscanf(text, "%d-%d", &first, &end)
		end++
	case text != "":
		end, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil || first >= end {
		return 0, 0, fmt.Errorf("SBR_ROUNDS=%s: a number of rounds, or the first and the last seed with a dash in between", text)
	}
	return first, end, nil
}
