package lease_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Random histories: several owners over one store, each with a clock of its own rate and faults of its own, acquiring plain
// locks and verdicts, releasing, reading, watching, pausing, closing and coming back as another incarnation, while the store
// loses requests and answers, delays, conflicts, commits late and is edited. What must hold is in history_test.go.
func TestProperty_OneHolderWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScript(rt)
		var broken []string
		synctest.Test(t, func(t *testing.T) { broken = play(s) })
		if len(broken) > 0 {
			rt.Fatalf("%s\n%v", strings.Join(broken, "\n"), s)
		}
	})
}

// script is one history to be.
type script struct {
	rates []float64
	steps []step
}

type step struct {
	after    time.Duration
	owner    int
	verb     string
	n        int
	duration time.Duration
	keep     uint8
}

func (s step) String() string {
	return fmt.Sprintf("+%v %d.%s(%d, %v, %b)", s.after, s.owner, s.verb, s.n, s.duration, s.keep)
}

var verbs = []string{
	"acquire", "acquire", "acquire", "verdict", "verdict", "verdict", "release", "read", "watch", "pause", "restart",
	"down", "lose-requests", "lose-responses", "delay", "conflict", "late", "late", "refuse", "lose-writes", "heal", "heal", "touch",
}

func drawScript(rt *rapid.T) script {
	owners := rapid.IntRange(3, 5).Draw(rt, "owners")
	seconds := func(label string, limit int) time.Duration {
		return time.Duration(rapid.IntRange(0, limit*20).Draw(rt, label)) * 50 * time.Millisecond
	}
	var s script
	for range owners {
		s.rates = append(s.rates, rapid.SampledFrom([]float64{0.95, 1, 1.05}).Draw(rt, "rate"))
	}
	for range rapid.IntRange(5, 40).Draw(rt, "steps") {
		s.steps = append(s.steps, step{
			after:    seconds("after", 5),
			owner:    rapid.IntRange(0, owners-1).Draw(rt, "owner"),
			verb:     rapid.SampledFrom(verbs).Draw(rt, "verb"),
			n:        rapid.SampledFrom([]int{1, 2, 5, -1}).Draw(rt, "n"),
			duration: seconds("duration", 20),
			keep:     rapid.Uint8().Draw(rt, "keep"),
		})
	}
	return s
}

// play runs a script and reports what was violated.
func play(s script) []string {
	h := newHistory(s.rates)
	done := make(chan struct{})
	go h.sample(done)
	for _, st := range s.steps {
		time.Sleep(st.after)
		h.do(st)
	}
	h.quiesce()
	close(done)
	h.closeAll()
	h.checkCommits()
	return h.violations()
}

// do starts one step; what takes time goes on beside the next steps.
func (h *history) do(st step) {
	p := h.parties[st.owner]
	v := p.view
	switch st.verb {
	case "acquire":
		p.enqueue(func() { h.acquire(p, lease.Proposal{}) })
	case "verdict":
		p.enqueue(func() { h.verdict(p, st.keep) })
	case "release":
		h.background(func() { _ = p.live.Load().Release(h.ctx) })
	case "read":
		h.background(func() { _, _ = p.live.Load().Read(h.ctx) })
	case "watch":
		h.background(func() { _ = p.live.Load().Watch(h.ctx, func(lease.Record) {}) })
	case "pause":
		p.clock.freeze(st.duration)
	case "restart":
		p.enqueue(func() { h.restart(p) })
	case "down":
		v.SetUnavailable(true)
	case "lose-requests":
		v.Inject(leasetest.All, leasetest.LoseRequest, st.n)
	case "lose-responses":
		v.Inject(leasetest.All, leasetest.LoseResponse, st.n)
	case "delay":
		v.SetDelay(st.duration / 10)
	case "conflict":
		v.Inject(leasetest.Writes, leasetest.Conflict, st.n)
	case "late":
		v.CommitLate(st.n, st.duration)
	case "refuse":
		v.Inject(leasetest.Writes, leasetest.Refuse, st.n)
	case "lose-writes":
		v.Inject(leasetest.Writes, leasetest.LoseResponse, st.n)
	case "heal":
		v.Heal()
	case "touch":
		h.store.Touch()
	}
}

// The same property, driven hard by the schedule alone: everybody wants it all the time and the store fails all the time.
func TestProperty_Contention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := script{rates: []float64{0.95, 1, 1.05}}
		faults := []string{"late", "lose-responses", "lose-requests", "conflict", "down", "heal", "heal", "pause"}
		for range rapid.IntRange(10, 60).Draw(rt, "rounds") {
			owner := rapid.IntRange(0, 2).Draw(rt, "owner")
			s.steps = append(s.steps,
				step{
					owner: owner, verb: rapid.SampledFrom(faults).Draw(rt, "fault"), n: rapid.IntRange(1, 3).Draw(rt, "n"),
					duration: time.Duration(rapid.IntRange(0, 150).Draw(rt, "duration")) * 100 * time.Millisecond,
				},
				step{
					owner: owner, verb: rapid.SampledFrom([]string{"acquire", "verdict"}).Draw(rt, "verb"), keep: 0xff,
					after: time.Duration(rapid.IntRange(0, 30).Draw(rt, "after")) * 100 * time.Millisecond,
				})
		}
		var broken []string
		synctest.Test(t, func(t *testing.T) { broken = play(s) })
		if len(broken) > 0 {
			rt.Fatalf("%s\n%v", strings.Join(broken, "\n"), s)
		}
	})
}

// A check that cannot fail is worth nothing: each of these broken stores or owners must be noticed.
func TestProperty_TheChecksNotice(t *testing.T) {
	breakages := map[string]func(*history){
		"second holder": func(h *history) {
			h.acquire(h.parties[0], lease.Proposal{})
			h.store.Restore(lease.Record{Holder: "1.0", Token: 99, Nonce: "forged"})
		},
		"token goes back": func(h *history) { h.acquire(h.parties[0], lease.Proposal{}); h.store.Restore(lease.Record{}) },
	}
	for name, breakIt := range breakages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory([]float64{1, 1})
				breakIt(h)
				h.closeAll()
				h.checkCommits()
				if got := h.violations(); !slices.ContainsFunc(got, func(s string) bool { return s != "" }) {
					t.Fatal("nothing was noticed")
				}
			})
		})
	}
}
