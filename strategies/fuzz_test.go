package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// FuzzDecide builds a view from any bytes, also one that no resolver would build, and looks for panics and
// broken promises.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 2, 0x12, 0x92, 0x12, 0x11, 0x21})
	f.Add([]byte{5, 4, 0x02, 0x42, 0x82, 0xc2, 0x03, 0x10, 0x01, 0x24, 0x42, 0xff, 0x13})
	f.Fuzz(func(t *testing.T, data []byte) {
		v := decode(data)
		for i := range 40 {
			s := seeded(uint64(i)).strategy()
			promises(t, v, sbr.Decide(s, &v, float64(i%5)/4))
		}
		v.Leader()
		v.Responsible()
		v.Oldest("r")
	})
}

// decode reads how many members and reports there are, then a byte for each: low bits the status, high bits
// reachability and role; or the two ends. What is left is the seen-by set. IDs may be used twice, and reports
// may speak of strangers.
func decode(data []byte) sbr.View {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	var members []sbr.Member
	var reports []sbr.Report
	n, k := next()%16, next()%16
	id := func(b int) sbr.ID { return sbr.ID(fmt.Sprint(b % 12)) }
	for i := range n {
		b := next()
		m := sbr.Member{ID: id(i), Name: string(id(b >> 3)), Addr: fmt.Sprintf("h:%d", b>>2), Born: int64(b>>4) - 3,
			Status: sbr.Status(b & 7), Unreachable: b&0x40 != 0}
		if b&0x80 != 0 {
			m.Roles = []string{"r"}
		}
		members = append(members, m)
	}
	for range k {
		b := next()
		reports = append(reports, sbr.Report{Observer: id(b & 15), Subject: id(b >> 4)})
	}
	var seen []sbr.ID
	for len(data) > 0 {
		seen = append(seen, id(next()))
	}
	return sbr.NewView(id(n), members, reports, seen)
}

// promises are what holds for every decision about every view.
func promises(t *testing.T, v sbr.View, d sbr.Decision) {
	t.Helper()
	require.NotEmpty(t, d.Reason)
	require.GreaterOrEqual(t, d.Delay, 0*d.Delay)
	if d.Final == sbr.None {
		require.Empty(t, d.Down)
	}
	if !d.Kind.NeedsLease() {
		require.Zero(t, d.Delay)
	}
	// Down lists downable members only, once each, in address order.
	downable := slices.DeleteFunc(slices.Clone(v.Members), func(m sbr.Member) bool { return !m.Downable() })
	for _, id := range d.Down {
		i := slices.IndexFunc(downable, func(m sbr.Member) bool { return m.ID == id })
		require.GreaterOrEqual(t, i, 0, "%s: %v", id, d.Down)
		downable = downable[i+1:]
	}
	for _, final := range []sbr.Kind{d.Final.Granted(), d.Final.Reverse()} {
		require.False(t, final.NeedsLease())
	}
	r := d.Reversed(&v, 0.5)
	require.False(t, r.Final.NeedsLease())
}

// source draws small random views: at most seven members, so that a failure can be read.
type source struct{ *rand.Rand }

func seeded(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 0))} }

func pick[T any](r source, from ...T) T { return from[r.IntN(len(from))] }

var statuses = []sbr.Status{sbr.Up, sbr.Up, sbr.Up, sbr.Up, sbr.Up, sbr.Joining, sbr.WeaklyUp, sbr.Leaving,
	sbr.Exiting, sbr.Down}

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
		return strategies.KeepReferee{Address: pick(r, "", "n0", "n1", "h1:7946", "elsewhere"),
			DownAllIfLessThanNodes: r.IntN(4)}
	case 4:
		return strategies.LeaseMajority{Role: role,
			AcquireLeaseDelayForMinority: time.Duration(r.IntN(3)) * time.Second}
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
		fmt.Fprintf(&b, "  %s name=%s addr=%q born=%d roles=%v %s unreachable=%v\n", m.ID, m.Name, m.Addr, m.Born,
			m.Roles, m.Status, m.Unreachable)
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
