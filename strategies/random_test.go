package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// source draws small random views: at most seven members, so that a failure can be read.
type source struct{ *rand.Rand }

func seeded(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](r source, from ...T) T { return from[r.IntN(len(from))] }

var statuses = []sbr.Status{sbr.Up, sbr.Up, sbr.Up, sbr.Up, sbr.Up, sbr.Joining, sbr.WeaklyUp, sbr.Leaving, sbr.Exiting, sbr.Down}

func (r source) view() sbr.View {
	members := r.members(r.IntN(8))
	var reports []sbr.Report
	if r.IntN(3) > 0 {
		reports = r.reports(members, r.IntN(8))
	}
	// Mostly as in a real cluster: a reported member is unreachable, and an unreachable member is reported.
	if r.IntN(4) > 0 {
		for i := range members {
			for _, rep := range reports {
				members[i].Unreachable = members[i].Unreachable || rep.Subject == members[i].ID
			}
		}
	}
	return sbr.NewView(r.id(len(members)), members, reports, r.seenBy(members))
}

func (r source) id(n int) sbr.ID { return sbr.ID(fmt.Sprintf("m%d", r.IntN(max(1, n)))) }

func (r source) members(n int) []sbr.Member {
	onlyUp, cut := r.IntN(3) == 0, r.IntN(5) > 0
	members := make([]sbr.Member, n)
	for i, order := range r.Perm(n) {
		m := sbr.Member{
			ID: sbr.ID(fmt.Sprintf("m%d", i)), Name: fmt.Sprintf("n%d", order/2), // names may be used twice
			Addr: pick(r, fmt.Sprintf("h%d:7946", order), fmt.Sprintf("h%d:%d", order/3, 8+order), ""),
			Born: int64(r.IntN(n + 1)), Status: pick(r, statuses...), Unreachable: cut && r.IntN(2) == 0,
		}
		if onlyUp {
			m.Status = sbr.Up
		}
		if r.IntN(3) > 0 {
			m.Roles = []string{"other", "r"}
		}
		members[i] = m
	}
	return members
}

// reports are between any two members, also a stranger and oneself, some of them twice.
func (r source) reports(members []sbr.Member, n int) (reports []sbr.Report) {
	for range n {
		rep := sbr.Report{Observer: r.id(len(members)), Subject: r.id(len(members))}
		if r.IntN(20) == 0 {
			rep.Observer = "stranger"
		}
		reports = append(reports, rep)
		if r.IntN(8) == 0 {
			reports = append(reports, rep)
		}
	}
	return reports
}

func (r source) seenBy(members []sbr.Member) (seen []sbr.ID) {
	if r.IntN(2) == 0 {
		return nil
	}
	for _, m := range members {
		if r.IntN(2) == 0 {
			seen = append(seen, m.ID)
		}
	}
	return seen
}

// strategy draws a strategy with settings, valid or not.
func (r source) strategy() sbr.Strategy {
	role := pick(r, "", "", "r", "nobody")
	switch r.IntN(6) {
	case 0:
		return strategies.KeepMajority{Role: role}
	case 1:
		return strategies.StaticQuorum{QuorumSize: r.IntN(6) - 1, Role: role}
	case 2:
		return strategies.KeepOldest{DownIfAlone: r.IntN(2) == 0, Role: role}
	case 3:
		return strategies.KeepReferee{Address: pick(r, "", "n0", "n1", "h1:7946", "elsewhere"), DownAllIfLessThanNodes: r.IntN(4)}
	case 4:
		return strategies.LeaseMajority{Role: role, AcquireLeaseDelayForMinority: time.Duration(r.IntN(3)) * time.Second}
	default:
		return strategies.DownAll{}
	}
}

func (r source) threshold() float64 { return pick(r, 0, 0.3, 0.5, sbr.Off) }

// show prints a view so that a failing case can be read and drawn.
func show(v sbr.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "self %s\n", v.Self)
	for _, m := range v.Members {
		fmt.Fprintf(&b, "  %s name=%s addr=%q born=%d roles=%v %s unreachable=%v\n", m.ID, m.Name, m.Addr, m.Born, m.Roles, m.Status, m.Unreachable)
	}
	fmt.Fprintf(&b, "  reports %v seen-by %v", v.Reports, v.SeenBy)
	return b.String()
}

// everySeed runs check for a range of seeds; a failure names its seed.
func everySeed(t *testing.T, seeds uint64, check func(t *testing.T, r source)) {
	t.Helper()
	if testing.Short() {
		seeds /= 10
	}
	for seed := range seeds {
		check(t, seeded(seed))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
