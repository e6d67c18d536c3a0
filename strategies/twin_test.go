package strategies_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// The twin is a second, deliberately simple implementation of the strategies and of sbr.Decide: sets of
// members filtered again and again, straight from the words of the reference. It shares no code with the real
// one. twin_compare_test.go holds them together.

type ids map[sbr.ID]bool

func (s ids) union(o ids) ids {
	u := ids{}
	for id := range s {
		u[id] = true
	}
	for id := range o {
		u[id] = true
	}
	return u
}

func (s ids) intersect(o ids) ids {
	u := ids{}
	for id := range s {
		if o[id] {
			u[id] = true
		}
	}
	return u
}

func (s ids) minus(o ids) ids {
	u := ids{}
	for id := range s {
		if !o[id] {
			u[id] = true
		}
	}
	return u
}

type record struct{ observer, subject sbr.ID }

type world struct {
	members     map[sbr.ID]sbr.Member
	unreachable ids
	records     map[record]bool
	seenBy      ids
}

func worldOf(v sbr.View) world {
	w := world{members: map[sbr.ID]sbr.Member{}, unreachable: ids{}, records: map[record]bool{}, seenBy: ids{}}
	for _, m := range v.Members {
		w.members[m.ID] = m
		if m.Unreachable {
			w.unreachable[m.ID] = true
		}
	}
	for _, r := range v.Reports {
		_, from := w.members[r.Observer]
		_, to := w.members[r.Subject]
		if from && to && r.Observer != r.Subject {
			w.records[record{r.Observer, r.Subject}] = true
		}
	}
	for _, id := range v.SeenBy {
		w.seenBy[id] = true
	}
	return w
}

func (w world) having(role string, statuses ...sbr.Status) ids {
	s := ids{}
	for id, m := range w.members {
		if slices.Contains(statuses, m.Status) && (role == "" || slices.Contains(m.Roles, role)) {
			s[id] = true
		}
	}
	return s
}

// The views of the membership that the reference defines.
func (w world) base(role string) ids    { return w.having(role, sbr.Up, sbr.Leaving) }
func (w world) up(role string) ids      { return w.having(role, sbr.Up) }
func (w world) joining(role string) ids { return w.having(role, sbr.Joining, sbr.WeaklyUp) }
func (w world) downable() ids           { return w.base("").union(w.joining("")) }
func (w world) reachable(s ids) ids     { return s.minus(w.unreachable) }
func (w world) notReachable(s ids) ids  { return s.intersect(w.unreachable) }
func (w world) nothingIsUnreachable() bool {
	return len(w.unreachable) == 0 && len(w.indirect()) == 0
}

// first sorts by less and returns the first.
func (w world) first(s ids, less func(a, b sbr.Member) bool) sbr.ID {
	var best sbr.ID
	for id := range s {
		if best == "" || less(w.members[id], w.members[best]) {
			best = id
		}
	}
	return best
}

func lowerAddress(a, b sbr.Member) bool {
	split := func(m sbr.Member) (string, int) {
		addr := m.Addr
		if addr == "" {
			return m.Name, 0
		}
		i := strings.LastIndex(addr, ":")
		if i < 0 {
			return addr, 0
		}
		port, _ := strconv.Atoi(addr[i+1:])
		return addr[:i], port
	}
	ah, ap := split(a)
	bh, bp := split(b)
	switch {
	case ah != bh:
		return ah < bh
	case ap != bp:
		return ap < bp
	case a.Name != b.Name:
		return a.Name < b.Name
	default:
		return a.ID < b.ID
	}
}

func older(a, b sbr.Member) bool {
	age := func(m sbr.Member) int64 {
		if m.Born == 0 {
			return 1 << 62
		}
		return m.Born
	}
	if age(a) != age(b) {
		return age(a) < age(b)
	}
	return lowerAddress(a, b)
}

// The indirectly connected members.
func (w world) crossed() ids {
	observers, subjects := ids{}, ids{}
	for r := range w.records {
		observers[r.observer], subjects[r.subject] = true, true
	}
	return observers.intersect(subjects)
}

func (w world) throughSeen() ids {
	s := ids{}
	for r := range w.records {
		if w.seenBy[r.subject] {
			s[r.observer], s[r.subject] = true, true
		}
	}
	return s
}

func (w world) indirect() ids { return w.crossed().union(w.throughSeen()) }

type answer struct {
	kind  sbr.Kind
	delay time.Duration
}

func twinAnswer(s sbr.Strategy, w world) answer {
	if w.nothingIsUnreachable() {
		return answer{kind: sbr.None}
	}
	switch s := s.(type) {
	case strategies.KeepMajority:
		return answer{kind: twinMajority(s.Role, w)}
	case strategies.StaticQuorum:
		return answer{kind: twinQuorum(s.QuorumSize, s.Role, w)}
	case strategies.KeepOldest:
		return answer{kind: twinOldest(s.DownIfAlone, s.Role, w)}
	case strategies.KeepReferee:
		return answer{kind: twinReferee(s.Address, s.DownAllIfLessThanNodes, w)}
	case strategies.DownAll:
		return answer{kind: sbr.DownAll}
	case strategies.LeaseMajority:
		return twinLease(s.Role, s.AcquireLeaseDelayForMinority, w)
	default:
		panic("no twin")
	}
}

func twinQuorum(q int, role string, w world) sbr.Kind {
	n, u := len(w.base(role)), len(w.notReachable(w.base(role)))
	if n > 2*q-1 {
		return sbr.DownAll
	}
	if len(w.indirect()) > 0 {
		return sbr.DownIndirectlyConnected
	}
	if n-u >= q {
		return sbr.DownUnreachable
	}
	return sbr.DownReachable
}

func twinMajority(role string, w world) sbr.Kind {
	if len(w.indirect()) > 0 {
		return sbr.DownIndirectlyConnected
	}
	counted := w.base(role)
	if len(counted) == 0 {
		return sbr.DownAll
	}
	decide := func(r, u int, lowest sbr.ID) sbr.Kind {
		if r > u {
			return sbr.DownUnreachable
		}
		if r < u || w.unreachable[lowest] {
			return sbr.DownReachable
		}
		return sbr.DownUnreachable
	}
	firstAnswer := decide(len(w.reachable(counted)), len(w.notReachable(counted)),
		w.first(counted, lowerAddress))
	if firstAnswer != sbr.DownUnreachable {
		return firstAnswer
	}
	up := w.up(role)
	if len(up) == 0 {
		return sbr.DownAll
	}
	other := w.notReachable(counted.union(w.joining(role)))
	if decide(len(w.reachable(up)), len(other), w.first(up, lowerAddress)) != sbr.DownUnreachable {
		return sbr.DownAll
	}
	return sbr.DownUnreachable
}

func twinOldest(downIfAlone bool, role string, w world) sbr.Kind {
	if len(w.indirect()) > 0 {
		return sbr.DownIndirectlyConnected
	}
	counted := w.base(role)
	if len(counted) == 0 {
		return sbr.DownAll
	}
	decide := func(oldest sbr.ID, set ids) sbr.Kind {
		r, u := len(w.reachable(set)), len(w.notReachable(set))
		if !w.unreachable[oldest] {
			if downIfAlone && r == 1 && u >= 2 {
				return sbr.DownReachable
			}
			return sbr.DownUnreachable
		}
		if downIfAlone && u == 1 && r >= 2 {
			return sbr.DownUnreachable
		}
		return sbr.DownReachable
	}
	firstAnswer := decide(w.first(counted, older), counted)
	if firstAnswer != sbr.DownUnreachable {
		return firstAnswer
	}
	up := w.up(role)
	if len(up) == 0 {
		return sbr.DownAll
	}
	set := up
	if downIfAlone {
		set = up.union(w.joining(role))
	}
	if decide(w.first(up, older), set) != sbr.DownUnreachable {
		return sbr.DownAll
	}
	return sbr.DownUnreachable
}

func twinReferee(address string, limit int, w world) sbr.Kind {
	if len(w.indirect()) > 0 {
		return sbr.DownIndirectlyConnected
	}
	candidates := ids{}
	for id := range w.base("") {
		if m := w.members[id]; address != "" && (m.Addr == address || m.Name == address) {
			candidates[id] = true
		}
	}
	referee := w.first(candidates, func(a, b sbr.Member) bool { return older(b, a) })
	if referee == "" || w.unreachable[referee] {
		return sbr.DownReachable
	}
	if len(w.reachable(w.base(""))) < limit {
		return sbr.DownAll
	}
	return sbr.DownUnreachable
}

func twinLease(role string, delay time.Duration, w world) answer {
	if len(w.indirect()) > 0 {
		return answer{kind: sbr.AcquireLeaseAndDownIndirectlyConnected}
	}
	a := answer{kind: sbr.AcquireLeaseAndDownUnreachable}
	counted := w.base(role)
	n, u := len(counted), len(w.notReachable(counted))
	minority := n > 0 && (2*u > n || 2*u == n && w.unreachable[w.first(counted, lowerAddress)])
	if minority {
		a.delay = delay
	}
	return a
}
