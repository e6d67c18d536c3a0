// Package drive drives the machines of singletons and shards: its goroutine owns them. It calls the
// application's functions, holds leases, and exchanges messages with the other members.
package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// ErrStarted is returned by Begin when it is called a second time.
var ErrStarted = errors.New("a manager is started once")

// Machine is what a Driver drives.
type Machine interface {
	Step(now time.Duration, e slot.Event) []slot.Effect
	NextDeadline() (at time.Duration, ok bool)
}

// Runner is a Machine with slots.
type Runner interface {
	Machine
	Until() (at time.Duration, ok bool)
	Finished() bool
}

// Options are what a Driver needs of a manager. The functions are called by the goroutine that owns the
// machines.
type Options[M any] struct {
	Cluster Cluster
	// Topic is the topic of the managers' messages. Name and What name what runs, for errors and for the log.
	Topic, Name, What string
	// Kind and Instance are the labels of the metrics.
	Kind, Instance string
	Log            *slog.Logger
	// Rules are the machine's; Begin fills in Self and Gone.
	Rules slot.Rules
	// Pause, if set, is called before each step and may block.
	Pause func()
	// Encode and Decode are the wire format of messages.
	Encode func([]byte, M) []byte
	Decode func([]byte) (M, error)
	// Asked handles a request.
	Asked func(from sbr.ID, m M, answer func(M) error)
	// AsksItself: requests to all members, and to this one, also go to its own machines.
	AsksItself bool
	// Explained receives a machine's explanations. It returns more attributes for the log line.
	Explained func(e slot.Explain) (attrs []any)
	// GaveUp is called when the second machine gives up its run.
	GaveUp func(e slot.GiveUp)
	// Settled follows each round of steps.
	Settled func()
	// Looped, if set, is called once the machines are not driven any more; Closed when nothing of the driver
	// runs.
	Looped, Closed func()

	// Slots is the number of slots. Function returns the function of a run that has just begun.
	Slots    int
	Function func(r *Run) func(context.Context) error
	// Happened receives the progress of a run.
	Happened func(what Moment, r *Run, why string)
	// Ended decides what follows the end of a run, which took so long; Rest is the pause after a run that
	// could not begin.
	Ended func(r *Run, err error, took time.Duration) slot.RunEnded
	Rest  time.Duration
	// StopTimeout is how long a run may take to end before the log says so, again and again. Zero: never.
	StopTimeout time.Duration
	// Lease are the options of the slots' leases.
	Lease LeaseOptions
}

// Driver drives a machine with slots, and perhaps a second one. Its exported fields are owned by its
// goroutine once that runs.
type Driver[M any] struct {
	Options[M]
	Inbox   *inbox.Inbox
	Self    sbr.ID
	Origin  time.Time
	Machine Runner
	// Second gets the same views of the cluster as Machine; nil: there is none.
	Second Machine

	ctx     context.Context // ends when everything is over
	cancel  context.CancelFunc
	workers sync.WaitGroup
	over    chan struct{}
	begun   atomic.Bool
	open    map[uint64]func(M) error // unanswered requests of others: a run may take long to end
	kept    uint64
	runs    []running
	opening sync.Mutex
	meters  *meters
	until   Deadline      // when runs without a lease are over
	trusted time.Duration // until, as the machine counts
	anchor  time.Time     // the clocks at its last renewal
}

// New returns a driver that does nothing yet.
func New[M any](o Options[M]) *Driver[M] {
	d := &Driver[M]{Options: o, Inbox: inbox.New(), over: make(chan struct{}),
		open: make(map[uint64]func(M) error), runs: make([]running, o.Slots)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Begin finds this member in its cluster, and lets prepare make its machine. If it returns an error other
// than ErrStarted, it has called End.
func (d *Driver[M]) Begin(ctx context.Context, prepare func(context.Context, *downing.Peer) error) error {
	if !d.begun.CompareAndSwap(false, true) {
		return ErrStarted
	}
	self, err := Self(ctx, d.Cluster)
	if err != nil {
		err = fmt.Errorf("%s: start it after the provider: %w", d.Name, err)
	} else {
		d.Origin, d.Self = time.Now(), self.ID
		d.anchor = d.Origin
		d.Rules.Self, d.Rules.Gone = self.ID, Margins(d.Cluster.Peers(), d.Topic, d.Rules.Margin)
		if d.meters, err = newMeters(Meter(d.Cluster), d.Kind, d.Instance); err == nil {
			err = prepare(ctx, self)
		}
	}
	if err != nil {
		d.End()
	}
	return err
}

// Go begins to drive Machine. If offers, it announces that this member offers to run the slots; otherwise the
// member only answers. If the announcement fails, the driver ends.
func (d *Driver[M]) Go(ctx context.Context, offers bool) error {
	stopServing, err := d.Cluster.Serve(d.Topic, d.question)
	if err != nil {
		d.End()
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	// The process lives on, within its grace, until runs have ended and leases are released.
	d.Cluster.OnDown(func(string) { <-d.over })
	look := func() { d.Inbox.Post(func() {}) }
	stopFollowing := d.Cluster.Follow(look)
	look() // perhaps nothing ever changes
	go func() {
		defer d.End()
		d.loop()
		stopFollowing()
		stopServing() // later requests are answered as unserved
		for _, f := range d.Inbox.Take() {
			f() // earlier requests are answered before the tags are changed
		}
		if offers {
			d.withdraw()
		}
		if d.Looped != nil {
			d.Looped()
		}
	}()
	if !offers {
		return nil
	}
	if err := d.Cluster.Offer(ctx, d.Topic, true); err != nil {
		d.StopAtOnce()
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	return nil
}

// StandBy is for a member that drives nothing: it waits for Stop, or for the member's end.
func (d *Driver[M]) StandBy() {
	go func() {
		defer d.End()
		select {
		case <-d.Inbox.Wake():
		case <-d.Cluster.Downed():
		case <-d.Cluster.Left():
		}
	}()
}

// Stop hands over what runs and waits until nothing is left. If ctx ends first all runs are stopped at once,
// and its error is returned.
func (d *Driver[M]) Stop(ctx context.Context) error {
	if d.begun.CompareAndSwap(false, true) {
		d.End()
		return nil
	}
	d.Inbox.Post(func() { d.Step(d.Machine, slot.Resign{Patience: d.Rules.Patience()}) })
	select {
	case <-d.over:
		return nil
	case <-ctx.Done():
		d.StopAtOnce()
		return fmt.Errorf("%s: still stopping: %w", d.Name, ctx.Err())
	}
}

// StopAtOnce stops all runs without waiting for other members.
func (d *Driver[M]) StopAtOnce() { d.Inbox.Post(func() { d.Step(d.Machine, slot.Resign{}) }) }

// Over is closed once nothing of the driver runs any more.
func (d *Driver[M]) Over() <-chan struct{} { return d.over }

// Ready says why this member should get no requests for what the driver runs; nil: it may get requests. known
// says that a run is known. While a run moves the member stays ready: requests wait for the next run.
func (d *Driver[M]) Ready(known bool) error {
	p := d.Cluster.Peers()
	switch {
	case !d.begun.Load():
		return fmt.Errorf("%s: not started", d.Name)
	case Closed(d.over):
		return fmt.Errorf("%s: stopped", d.Name)
	case p.Self == "":
		return fmt.Errorf("%s: this member has not looked at its cluster yet", d.Name)
	case p.State != sbr.StateUp:
		return fmt.Errorf("%s: this member is %v", d.Name, p.State)
	case !known:
		return fmt.Errorf("%s: nothing of it has run yet, as far as this member has heard", d.Name)
	}
	return nil
}

// End closes everything that Begin and Go have opened.
func (d *Driver[M]) End() {
	d.Inbox.Close()
	d.meters.close()
	d.cancel()
	for i := range d.runs {
		if l := d.runs[i].lease; l != nil {
			l.Close()
		}
	}
	d.workers.Wait()
	if d.Closed != nil {
		d.Closed()
	}
	close(d.over)
}

// Now is the machines' clock: monotonic, since Begin.
func (d *Driver[M]) Now() time.Duration { return time.Since(d.Origin) }

// Step passes an event to a driven machine, and carries out the effects.
func (d *Driver[M]) Step(m Machine, e slot.Event) {
	if m != nil && (m == Machine(d.Machine) || m == d.Second) {
		d.carry(m, m.Step(d.Now(), e))
	}
}

// Question passes a request to a machine; nil: to none.
func (d *Driver[M]) Question(m Machine, from sbr.ID, msg M, answer func(M) error) {
	if m != nil {
		d.Step(m, slot.Asked[M]{Ref: d.keep(answer), From: from, Message: msg})
	}
}

// loop drives the machines until nothing can happen any more.
func (d *Driver[M]) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	downed, left := d.Cluster.Downed(), d.Cluster.Left()
	for !d.Machine.Finished() {
		timer.Reset(d.wait())
		select {
		case <-downed:
			downed = nil
			d.Step(d.Machine, slot.Downed{Why: "its resolver has decided so"})
		case <-left:
			left = nil
			d.Step(d.Machine, slot.Resign{})
		case <-d.Inbox.Wake():
		case <-timer.C:
		}
		if d.Pause != nil {
			d.Pause()
		}
		if downed != nil && Closed(downed) {
			continue // nothing comes before that
		}
		d.Look()
		for _, f := range d.Inbox.Take() {
			f()
		}
		for _, m := range d.machines() {
			d.Step(m, slot.Tick{})
		}
		d.Settled()
	}
}

func (d *Driver[M]) machines() []Machine {
	if d.Second == nil {
		return []Machine{d.Machine}
	}
	return []Machine{d.Machine, d.Second}
}

// wait is how long the loop may sleep.
func (d *Driver[M]) wait() time.Duration {
	wait := time.Hour
	for _, m := range d.machines() {
		if at, ok := m.NextDeadline(); ok {
			wait = min(wait, at-d.Now())
		}
	}
	if _, ok := d.Machine.Until(); ok {
		wait = min(wait, d.Rules.Trust/4) // confirmed membership moves the deadline: renew it in time
	}
	return max(wait, 0)
}

// Look passes the view of the cluster to the machines.
func (d *Driver[M]) Look() {
	p := d.Cluster.Peers()
	v := slot.View{Verdict: p.Verdict, Sure: -1}
	v.Armed = p.Self != "" && p.State != sbr.StateArming && p.State != sbr.StateDown
	if age := Since(p.Sure); !p.Sure.IsZero() && age < d.Rules.Trust {
		v.Sure = max(d.Now()-age, 0) // the clock begins with this driver
	}
	for _, m := range d.machines() {
		v.Peers = make([]slot.Peer, len(p.List)) // each machine keeps its own
		for i := range p.List {
			v.Peers[i] = slot.PeerOf(&p.List[i].Member, p.List[i].MayServe(d.Topic))
		}
		d.Step(m, slot.Viewed{View: v})
	}
	d.trustUntil()
}

// withdrawTimeout bounds the change of a tag.
const withdrawTimeout = 10 * time.Second

// withdraw removes the topic from this member's tag, if its node still runs.
func (d *Driver[M]) withdraw() {
	if Closed(d.Cluster.Downed()) || Closed(d.Cluster.Left()) {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, withdrawTimeout)
	defer cancel()
	d.debug(d.Cluster.Offer(ctx, d.Topic, false), "an offer was not withdrawn")
}

func (d *Driver[M]) debug(err error, what string) {
	if err != nil {
		d.Log.Debug("sbr: "+what, "error", err)
	}
}

// carry carries out a machine's effects.
func (d *Driver[M]) carry(m Machine, effects []slot.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case slot.Ask[M]:
			d.ask(m, e)
		case slot.Answer[M]:
			d.debug(d.answer(e.Ref, e.Message), "an answer was not sent")
		case slot.AcquireLease:
			d.acquire(e)
		case slot.ReleaseLease:
			d.release(e)
		case slot.Start:
			d.start(e)
		case slot.Stop:
			d.stop(e)
		case slot.GiveUp:
			d.GaveUp(e)
		case slot.Explain:
			d.explain(e)
		}
	}
}

func (d *Driver[M]) explain(e slot.Explain) {
	level := d.Log.Info
	switch e.Topic {
	case slot.TopicStuck:
		level = d.Log.Warn
	case slot.TopicOrdered, slot.TopicArrived:
		level = d.Log.Debug
	}
	level("sbr: "+e.Text, append([]any{"topic", string(e.Topic)}, d.Explained(e)...)...)
}

// ask sends a request, and handles its answers for 3 retry intervals: longer than the request takes to be
// repeated, so that one request is always open.
func (d *Driver[M]) ask(m Machine, e slot.Ask[M]) {
	answered := func(from sbr.ID, a M, unserved bool) {
		d.Inbox.Post(func() { d.Step(m, slot.Answered[M]{From: from, Message: a, Unserved: unserved}) })
	}
	if d.AsksItself && (e.To == "" || e.To == d.Self) {
		d.Inbox.Post(func() {
			d.Asked(d.Self, e.Message, func(a M) error {
				answered(d.Self, a, false)
				return nil
			})
		})
	}
	if e.To == d.Self {
		return
	}
	payload := d.Encode(nil, e.Message)
	d.workers.Go(func() {
		answers, err := d.Cluster.Ask(d.Topic, e.To, payload, 3*d.Rules.HandOverRetryInterval)
		if err != nil {
			d.debug(err, "a question was not sent")
			return
		}
		for {
			select {
			case a, open := <-answers:
				if !open {
					return
				}
				if a.Unserved {
					answered(a.From, e.Message, true)
				} else if msg, err := d.Decode(a.Payload); err != nil {
					d.Log.Debug("sbr: an answer was not understood", "from", downing.NameOf(a.From), "error", err)
				} else {
					answered(a.From, msg, false)
				}
			case <-d.ctx.Done():
				return
			}
		}
	})
}

// question handles a request of another member. It is called on a goroutine of the provider.
func (d *Driver[M]) question(q downing.Question) {
	msg, err := d.Decode(q.Payload)
	if err != nil {
		d.Log.Debug("sbr: a question was not understood", "from", downing.NameOf(q.From), "error", err)
		return
	}
	d.Inbox.Post(func() {
		d.Asked(q.From, msg, func(a M) error { return q.Answer(d.Encode(nil, a)) })
	})
}

// maxQuestions bounds the requests that are kept. Older ones are dropped: they are repeated.
const maxQuestions = 1024

// keep keeps an unanswered request, and returns its reference.
func (d *Driver[M]) keep(answer func(M) error) (ref uint64) {
	d.kept++
	d.open[d.kept] = answer
	delete(d.open, d.kept-maxQuestions)
	return d.kept
}

// answer answers a request, once. It does nothing if the request was dropped.
func (d *Driver[M]) answer(ref uint64, m M) error {
	answer, ok := d.open[ref]
	if !ok {
		return nil
	}
	delete(d.open, ref)
	return answer(m)
}
