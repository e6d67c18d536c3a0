package lease_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Random histories: several owners over one store, each with a clock of its own rate and faults of its own, acquiring plain
// locks and verdicts, releasing, reading, watching, pausing, closing and coming back as another incarnation, while the store
// loses requests and answers, delays, conflicts, commits late and is edited. What must hold is below.
func TestProperty_OneHolderWhateverHappens(t *testing.T) {
	replaced := 0
	check := func(rt *rapid.T) {
		s := drawScript(rt)
		var broken []string
		takeovers := 0
		synctest.Test(t, func(t *testing.T) { broken, takeovers = play(s) })
		if len(broken) > 0 {
			rt.Fatalf("%s\n%v", strings.Join(broken, "\n"), s)
		}
		replaced += takeovers
	}
	for range 5 { // five hundred histories
		rapid.Check(t, check)
	}
	require.NotZero(t, replaced, "what never happens is not tested")
}

// The same, if differences of wall clocks decided: what is checked must break, or it checks nothing.
func TestProperty_WallClocksWouldBeNoticed(t *testing.T) {
	scripts := rapid.Custom(drawScript)
	for seed := range 200 {
		s := scripts.Example(seed)
		s.naive = true
		var broken []string
		synctest.Test(t, func(t *testing.T) { broken, _ = play(s) })
		if len(broken) > 0 {
			t.Logf("noticed with seed %d: %s", seed, broken[0])
			return
		}
	}
	require.Fail(t, "it was not noticed")
}

const slowest, fastest = 0.95, 1.05

// script is one history to be. naive parties let differences of wall clocks decide.
type script struct {
	rates []float64
	steps []step
	naive bool
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
	"set-clock", "down", "lose-requests", "lose-responses", "delay", "conflict", "late", "late", "refuse", "lose-writes", "heal", "heal", "touch",
}

func drawScript(rt *rapid.T) script {
	owners := rapid.IntRange(3, 5).Draw(rt, "owners")
	seconds := func(label string, limit int) time.Duration {
		return time.Duration(rapid.IntRange(0, limit*20).Draw(rt, label)) * 50 * time.Millisecond
	}
	var s script
	for range owners {
		s.rates = append(s.rates, rapid.SampledFrom([]float64{slowest, 1, fastest}).Draw(rt, "rate"))
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

// play runs a script and reports what was violated, and how often a holder was replaced.
func play(s script) (broken []string, takeovers int) {
	h := newHistory(s.rates, s.naive)
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
	return h.violations(), h.takeovers
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
	case "set-clock":
		p.clock.set(time.Duration(st.n) * time.Duration(st.keep) * st.duration) // up to a week, to and fro
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
		s := script{rates: []float64{slowest, 1, fastest}}
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
		synctest.Test(t, func(t *testing.T) { broken, _ = play(s) })
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
				h := newHistory([]float64{1, 1}, false)
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

// historySettings are short, so that much happens in little virtual time. Their window is 7/8 - 1/12 of the timeout.
var historySettings = lease.Settings{HeartbeatTimeout: 12 * time.Second, HeartbeatInterval: 2 * time.Second, OperationTimeout: time.Second}

// history is a run of a script and what was seen of it.
type history struct {
	store   *leasetest.Memory
	parties []*party
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
	serial  atomic.Int64

	mu     sync.Mutex
	broken []string
	// holder is whom the record names, and sign when that was last written, by the true clock.
	holder    string
	sign      time.Time
	takeovers int
}

// party is one member: a view and a clock for life, and a lease for each incarnation.
type party struct {
	view  *leasetest.Faulty
	clock *machineClock
	queue chan func()
	live  atomic.Pointer[liveLease]
	index int
	lives int
}

// liveLease is a lease with what the checks need to know of it.
type liveLease struct {
	*lease.Lease
	clock *machineClock
	// nonce is the last one drawn. Acquires of one party are queued, so it is that of the running one.
	nonce atomic.Value
	// maybe says that the lease may be held: an Acquire runs or was not answered by "not granted".
	maybe atomic.Bool
}

func newHistory(rates []float64, naive bool) *history {
	h := &history{store: leasetest.NewMemory()}
	h.ctx, h.stop = context.WithCancel(context.Background())
	for i, rate := range rates {
		p := &party{
			view: h.store.View(strconv.Itoa(i)), index: i, queue: make(chan func(), 1000),
			clock: newClock(time.Duration(i-1)*day, rate),
		}
		p.clock.naive = naive
		h.restart(p)
		h.parties = append(h.parties, p)
		h.running.Go(func() {
			for f := range p.queue {
				f()
			}
		})
	}
	h.store.OnCommit(h.atCommit)
	return h
}

func (p *party) enqueue(f func()) { p.queue <- f }

func (h *history) background(f func()) { h.running.Go(f) }

func (h *history) fail(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

func (h *history) violations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken
}

// restart closes the lease of p and gives it the next incarnation.
func (h *history) restart(p *party) {
	if old := p.live.Load(); old != nil {
		old.Close()
	}
	l := &liveLease{clock: p.clock}
	l.nonce.Store("")
	owner := fmt.Sprintf("%d.%d", p.index, p.lives)
	p.lives++
	inner, err := lease.New(p.view, owner, historySettings, lease.Options{Clock: p.clock, Nonce: func() string {
		n := owner + "#" + strconv.FormatInt(h.serial.Add(1), 10)
		l.nonce.Store(n)
		return n
	}})
	if err != nil {
		panic(err)
	}
	l.Lease = inner
	p.live.Store(l)
}

// acquire runs one Acquire and checks its answer.
func (h *history) acquire(p *party, proposal lease.Proposal) {
	l := p.live.Load()
	l.nonce.Store("")
	before := l.maybe.Swap(true)
	out := linear.AnswerOf(l.Acquire(h.ctx, proposal))
	nonce := l.nonce.Load().(string)
	switch committed := h.find(nonce); {
	case out.Kind == sbr.Granted && h.find(out.Record.Nonce) == nil:
		h.fail("%s: granted under the nonce %q, which is not in the history", l.Owner(), out.Record.Nonce)
	case out.Kind == sbr.Granted && out.Record.Holder != l.Owner():
		h.fail("%s: granted to %s", l.Owner(), out.Record.Holder)
	case out.Kind == sbr.Held && committed != nil:
		h.fail("%s: held, yet %q was written", l.Owner(), nonce)
	case out.Kind == sbr.Held && out.Record.Holder == l.Owner():
		before = true // adopted
	}
	if out.Kind != sbr.Granted {
		l.maybe.Store(before)
	}
}

// verdict proposes the next one by the rule: its survivors are among those of the one it builds upon.
func (h *history) verdict(p *party, keep uint8) {
	r, err := p.live.Load().Read(h.ctx)
	if err != nil {
		return
	}
	v := &sbr.Verdict{DecidedBy: sbr.ID(p.live.Load().Owner())}
	for i := range len(h.parties) {
		id := sbr.ID(strconv.Itoa(i))
		if (r.Verdict == nil || slices.Contains(r.Verdict.Survivors, id)) && (keep&(1<<i) != 0 || i == p.index) {
			v.Survivors = append(v.Survivors, id)
		}
	}
	h.acquire(p, lease.Proposal{Verdict: v, Base: r.Token})
}

func (h *history) find(nonce string) *lease.Record {
	if nonce == "" {
		return nil
	}
	all := h.store.History()
	if i := slices.IndexFunc(all, func(r lease.Record) bool { return r.Nonce == nonce }); i >= 0 {
		return &all[i]
	}
	return nil
}

// holders lists who says that it holds the lease. A paused process says nothing.
func (h *history) holders() (who []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.parties {
		if l := p.live.Load(); !l.clock.frozen() && l.Check() {
			who = append(who, l.Owner())
			if !l.maybe.Load() {
				h.broken = append(h.broken, l.Owner()+": holds although it was told otherwise")
			}
		}
	}
	return who
}

// atCommit is the heart of the matter: at the instant at which a record is written, nobody but its holder says "held".
func (h *history) atCommit(r lease.Record) {
	for _, who := range h.holders() {
		if who != r.Holder {
			h.fail("%s says it holds the lease while %q is written as the holder under token %d", who, r.Holder, r.Token)
		}
	}
	if h.holder != "" && r.Holder != "" && r.Holder != h.holder {
		h.takeovers++
		least := time.Duration(float64(historySettings.HeartbeatTimeout) / fastest)
		if silent := time.Since(h.sign); silent < least {
			h.fail("%q was replaced by %q after %v of silence: less than %v", h.holder, r.Holder, silent, least)
		}
	}
	h.holder, h.sign = r.Holder, time.Now()
}

// sample looks again and again, for what goes wrong without a write.
func (h *history) sample(done <-chan struct{}) {
	for {
		if who := h.holders(); len(who) > 1 {
			h.fail("several holders: %s", strings.Join(who, ", "))
		}
		select {
		case <-done:
			return
		case <-time.After(97 * time.Millisecond):
		}
	}
}

// quiesce ends the faults; then somebody new must get the lease in bounded time (nobody is locked out for ever).
func (h *history) quiesce() {
	for _, p := range h.parties {
		p.view.Heal()
	}
	time.Sleep(40 * time.Second) // pauses and late commits end
	for _, p := range h.parties {
		p.enqueue(func() { _ = p.live.Load().Release(h.ctx) })
	}
	last, err := lease.New(h.store.View("last"), "last", historySettings, lease.Options{})
	if err != nil {
		panic(err)
	}
	defer last.Close()
	for start := time.Now(); linear.AnswerOf(last.Acquire(h.ctx, lease.Proposal{})).Kind != sbr.Granted; time.Sleep(time.Second) {
		if time.Since(start) > 3*historySettings.HeartbeatTimeout {
			h.fail("locked out: %+v", h.store.Snapshot())
			return
		}
	}
}

func (h *history) closeAll() {
	h.stop()
	for _, p := range h.parties {
		close(p.queue)
	}
	h.running.Wait()
	for _, p := range h.parties {
		p.live.Load().Close()
	}
}

// checkCommits looks at what the store went through.
func (h *history) checkCommits() {
	var last lease.Record
	for _, r := range h.store.History() {
		switch {
		case r.Token < last.Token:
			h.fail("the token went back from %d to %d", last.Token, r.Token)
		case r.Token > last.Token+1:
			h.fail("the token jumped from %d to %d", last.Token, r.Token)
		case r.Token == last.Token && r.Nonce != last.Nonce:
			h.fail("token %d was given twice, as %q and %q", r.Token, last.Nonce, r.Nonce)
		case r.Token == last.Token && r.Holder != last.Holder && r.Holder != "":
			h.fail("token %d went from %q to %q", r.Token, last.Holder, r.Holder)
		case r.Verdict == nil && last.Verdict != nil:
			h.fail("the verdict vanished under token %d", r.Token)
		case r.Verdict != nil && r.Verdict.Token > r.Token:
			h.fail("verdict %d under token %d", r.Verdict.Token, r.Token)
		}
		if r.Verdict != nil && last.Verdict != nil {
			if r.Verdict.Token < last.Verdict.Token {
				h.fail("the verdict went back from %d to %d", last.Verdict.Token, r.Verdict.Token)
			}
			for _, id := range r.Verdict.Survivors {
				if !slices.Contains(last.Verdict.Survivors, id) {
					h.fail("%s is back among the survivors under token %d", id, r.Token)
				}
			}
		}
		last = r
	}
}
