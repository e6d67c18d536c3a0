// Package drive drives the machines of singletons and shards: it is the goroutine that owns them, calls the
// application's functions, holds leases, and talks to the other members.
package drive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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
	Tick(now time.Duration) []slot.Effect
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
	// Topic is where the managers talk. Name and What say what this is, for errors and for the log, which has
	// its name.
	Topic, Name, What string
	// Kind and Instance are the labels of its metrics: what runs, and which.
	Kind, Instance string
	Log            *slog.Logger
	// Rules are those of the machine; Begin fills in Self and Gone.
	Rules slot.Rules
	// Pause, if set, is called before each step and may block.
	Pause func()
	// Encode and Decode are the wire form of what members say.
	Encode func([]byte, M) []byte
	Decode func([]byte) (M, error)
	// Asked takes in a question.
	Asked func(from sbr.ID, m M, answer func(M) error)
	// AsksItself: questions to everybody, and to this member, are for its own machines as well.
	AsksItself bool
	// Explained is told what a machine explains. It returns what more the log line says.
	Explained func(e slot.Explain) (attrs []any)
	// GaveUp is told that the second machine is of no use any more.
	GaveUp func(e slot.GiveUp)
	// Settled follows each round of steps.
	Settled func()
	// Looped, if set, is called once the machines are not driven any more; Closed when nothing of the driver
	// runs.
	Looped, Closed func()

	// Slots is how many there are. Function is what one of them runs, in a run that has just begun.
	Slots    int
	Function func(r *Run) func(context.Context) error
	// Happened is told what becomes of a run.
	Happened func(what Moment, r *Run, why string)
	// Ended says what is to be done after the end of a run, which took so long; Rest is the pause where it
	// could not even begin.
	Ended func(r *Run, err error, took time.Duration) slot.RunEnded
	Rest  time.Duration
	// StopTimeout is how long a run may take to end before that is said loudly, again and again. Zero: it is
	// not said.
	StopTimeout time.Duration
	// Lease is where the slots have their leases.
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
	// Second is told what the first machine is told of the cluster; nil: there is none.
	Second Machine

	ctx     context.Context // ends when everything is over
	cancel  context.CancelFunc
	workers sync.WaitGroup
	over    chan struct{}
	begun   atomic.Bool
	open    map[uint64]func(M) error // questions of others that have no answer yet: it may take as long as a run takes to end
	kept    uint64
	runs    []running
	meters  *meters
	until   Deadline // when runs without a lease are over
}

// New returns a driver that does nothing yet.
func New[M any](o Options[M]) *Driver[M] {
	d := &Driver[M]{Options: o, Inbox: inbox.New(), over: make(chan struct{}), open: make(map[uint64]func(M) error), runs: make([]running, o.Slots)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// Begin finds this member in its cluster, and has prepare make its machine. Unless the error is ErrStarted,
// End has been called when there is one.
func (d *Driver[M]) Begin(ctx context.Context, prepare func(context.Context, *downing.Peer) error) error {
	if !d.begun.CompareAndSwap(false, true) {
		return ErrStarted
	}
	self, err := Self(ctx, d.Cluster)
	if err != nil {
		err = fmt.Errorf("%s: start it after the provider: %w", d.Name, err)
	} else {
		d.Origin, d.Self = time.Now(), self.ID
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

// Go begins to drive Machine, and tells the others that this member offers to run something; otherwise it
// only answers. Where that cannot be told, all ends again.
func (d *Driver[M]) Go(ctx context.Context, offers bool) error {
	stopServing, err := d.Cluster.Serve(d.Topic, d.question)
	if err != nil {
		d.End()
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	// The process lives on, within its grace, until runs have ended and leases are given back.
	d.Cluster.OnDown(func(string) { <-d.over })
	look := func() { d.Inbox.Post(func() {}) }
	stopFollowing := d.Cluster.Follow(look)
	look() // perhaps nothing ever changes
	go func() {
		defer d.End()
		d.loop()
		stopFollowing()
		stopServing() // whoever asks from now on is told that nothing of it is here
		for _, f := range d.Inbox.Take() {
			f() // who has asked before is answered, before the tags are changed
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

// StandBy is what a member does that drives nothing: it waits for Stop, or for its own end.
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

// StopAtOnce stops all runs without waiting for anybody.
func (d *Driver[M]) StopAtOnce() { d.Inbox.Post(func() { d.Step(d.Machine, slot.Resign{}) }) }

// Over is closed once nothing of the driver runs any more.
func (d *Driver[M]) Over() <-chan struct{} { return d.over }

// Ready says why this member should get no requests for what the driver runs; nil: nothing speaks against it. known says
// that it has heard of a run. While a run moves it stays ready: requests wait for the next one.
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
	for i := range d.runs {
		d.closeLease(&d.runs[i])
	}
	d.cancel()
	d.workers.Wait()
	if d.Closed != nil {
		d.Closed()
	}
	close(d.over)
}

// Now is the machines' clock: monotonic, since Begin.
func (d *Driver[M]) Now() time.Duration { return time.Since(d.Origin) }

// Step hands an event to a machine that is driven, and carries out what it wants.
func (d *Driver[M]) Step(m Machine, e slot.Event) {
	if m != nil && (m == Machine(d.Machine) || m == d.Second) {
		d.carry(m, m.Step(d.Now(), e))
	}
}

// Question hands a question to a machine; nil: to none.
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
			d.carry(m, m.Tick(d.Now()))
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
		wait = min(wait, d.Rules.Trust/4) // the deadline moves as long as the member is sure: renew it in time
	}
	return max(wait, 0)
}

// Look tells the machines how the cluster is.
func (d *Driver[M]) Look() {
	p := d.Cluster.Peers()
	v := slot.View{Verdict: p.Verdict, Sure: -1}
	v.Armed = p.Self != "" && p.State != sbr.StateArming && p.State != sbr.StateDown
	if !p.Sure.IsZero() {
		v.Sure = max(d.Now()-Since(p.Sure), 0)
	}
	for _, m := range d.machines() {
		v.Peers = make([]slot.Peer, len(p.List)) // each machine keeps its own
		for i := range p.List {
			q := &p.List[i]
			v.Peers[i] = slot.Peer{
				ID: q.ID, Name: q.Name, Born: q.Born, Roles: strings.Join(q.Roles, ","),
				Candidate:   q.MayServe(d.Topic),
				Unreachable: q.Unreachable, Leaving: q.Status == sbr.Leaving || q.Status == sbr.Exiting, Down: q.Status == sbr.Down,
			}
		}
		d.Step(m, slot.Viewed{View: v})
	}
	d.trustUntil()
}

// withdrawTimeout bounds the change of a tag.
const withdrawTimeout = 10 * time.Second

// withdraw takes the topic out of this member's tag, as far as there still is a node.
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

// carry carries out what a machine wants.
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

// ask sends a question, and takes in answers for as long as it is open: longer than until it is repeated, so
// that one is always open.
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

// question takes in a question of another member. It is called on a goroutine of the provider.
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

// maxQuestions bounds the questions that are kept. Older ones are dropped: they are asked again.
const maxQuestions = 1024

// keep keeps a question that has no answer yet, and returns what it is known by.
func (d *Driver[M]) keep(answer func(M) error) (ref uint64) {
	d.kept++
	d.open[d.kept] = answer
	delete(d.open, d.kept-maxQuestions)
	return d.kept
}

// answer answers a question, once. It does nothing where the question was dropped.
func (d *Driver[M]) answer(ref uint64, m M) error {
	answer, ok := d.open[ref]
	if !ok {
		return nil
	}
	delete(d.open, ref)
	return answer(m)
}
