package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What a program does before it relies on a store: ask whether the store would do.
func ExamplePreflight() {
	store := leasetest.NewMemory()
	err := lease.Preflight(context.Background(), store)
	fmt.Println(err, errors.Is(err, lease.ErrRefused))
	// Output: <nil> false
}

// open returns the lease of owner over one store in memory.
func open(store *leasetest.Memory, owner string) *lease.Lease {
	l, err := lease.New(store.View(owner), owner, lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	return l
}

// A plain lock: acquire, check before each thing that needs it, release.
func ExampleLease() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()
	ctx := context.Background()

	grant, err := a.Acquire(ctx, lease.Proposal{})
	fmt.Println(grant.Token(), err, a.Check())
	_, err = b.Acquire(ctx, lease.Proposal{})
	fmt.Println(err, b.Check())
	err = grant.Release(ctx)
	<-grant.Done() // or a loss: stop working
	fmt.Println(err, a.Check(), grant.Lost(), grant.Err())
	grant, err = b.Acquire(ctx, lease.Proposal{})
	fmt.Println(grant.Token(), err)
	// Output:
	// 1 <nil> true
	// lease: held by "a" (token 1) false
	// <nil> false <nil> lease: lost: released by its owner
	// 2 <nil>
}

// Two sides of a partition propose; the second learns from the record that it has lost, even after the
// release.
func ExampleLease_Acquire_verdict() {
	store := leasetest.NewMemory()
	a, d := open(store, "a"), open(store, "d")
	defer a.Close()
	defer d.Close()
	ctx := context.Background()
	now, err := d.Read(ctx)
	if err != nil {
		panic(err)
	}

	grant, err := a.Acquire(ctx, lease.Proposal{Base: now.Token, Verdict: &sbr.Verdict{
		Survivors: []sbr.ID{"a", "b", "c"}, Down: []sbr.ID{"d", "e"}, DecidedBy: "a", Reason: "the majority",
	}})
	fmt.Println(grant.Token(), err)
	fmt.Println(grant.Release(ctx))
	_, err = d.Acquire(ctx, lease.Proposal{Base: now.Token,
		Verdict: &sbr.Verdict{Survivors: []sbr.ID{"d", "e"}}})
	var held *lease.HeldError
	fmt.Println(errors.As(err, &held), err)
	fmt.Println("d is out:", held.Record.Verdict.Standing("d", 0) == sbr.Out)
	// Output:
	// 1 <nil>
	// <nil>
	// true lease: held: superseded by token 1 (holder "")
	// d is out: true
}

// A store that cannot be reached is neither yes nor no.
func ExampleOutcomeOf() {
	store := leasetest.NewMemory()
	a := open(store, "a")
	defer a.Close()
	store.View("a").SetUnavailable(true)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := a.Acquire(ctx, lease.Proposal{})
	fmt.Println(lease.OutcomeOf(err), a.Check())
	// Output: unknown false
}

// Watch reports the record, and each change of it.
func ExampleLease_Watch() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	_, _ = a.Acquire(ctx, lease.Proposal{})
	_ = b.Watch(ctx, func(r lease.Record) {
		fmt.Printf("holder %q under token %d\n", r.Holder, r.Token)
		if r.Holder == "" {
			cancel()
			return
		}
		_ = a.Release(ctx)
	})
	// Output:
	// holder "a" under token 1
	// holder "" under token 1
}

// Waiting ends when the lease is free, or with the context.
func ExampleLease_AcquireWait() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()

	grant, err := a.AcquireWait(context.Background(), lease.Proposal{})
	fmt.Println(grant.Token(), err)
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = b.AcquireWait(soon, lease.Proposal{})
	fmt.Println(errors.Is(err, lease.ErrHeld), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// 1 <nil>
	// true true
}

// Work that needs ten seconds to stop begins to stop that long before the lease could run out.
func ExampleLease_ValidUntil() {
	l := open(leasetest.NewMemory(), "a")
	defer l.Close()
	_, ok := l.ValidUntil()
	fmt.Println(ok)
	_, _ = l.Acquire(context.Background(), lease.Proposal{})
	until, ok := l.ValidUntil()
	fmt.Println(ok, time.Until(until.Add(-10*time.Second)).Round(time.Minute) > 0)
	// Output:
	// false
	// true true
}

// An operator frees the lease of a holder that is gone.
func ExampleLease_ForceRelease() {
	store := leasetest.NewMemory()
	gone, admin := open(store, "gone"), open(store, "admin")
	defer admin.Close()
	ctx := context.Background()
	_, _ = gone.Acquire(ctx, lease.Proposal{})
	gone.Close() // without a release

	_, _, err := admin.ForceRelease(ctx, "somebody")
	fmt.Println(err)
	was, expired, err := admin.ForceRelease(ctx, "gone")
	fmt.Println(was.Holder, expired, err)
	// Output:
	// lease: not held: somebody else holds it: "gone", not "somebody"
	// gone false <nil>
}

// Check and Token go before each thing that needs the lease; the token goes along with it.
func ExampleLease_Check() {
	a := open(leasetest.NewMemory(), "a")
	defer a.Close()
	_, _ = a.Acquire(context.Background(), lease.Proposal{})
	if a.Check() {
		fmt.Printf("UPDATE jobs SET state = 'done', token = %d WHERE token <= %[1]d\n", a.Token())
	}
	// Output: UPDATE jobs SET state = 'done', token = 1 WHERE token <= 1
}

// A lease for a fixed time, without heartbeats. All its users must be ready to wait that long.
func ExampleProposal() {
	store := leasetest.NewMemory()
	s := lease.DefaultSettings()
	s.HeartbeatTimeout = lease.Infinite
	l, err := lease.New(store.View("a"), "a", s, lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, err = l.Acquire(context.Background(), lease.Proposal{For: time.Hour})
	fmt.Println(err, store.Snapshot().Record.TTL)
	// Output: <nil> 1h0m0s
}

// What follows from a setting, and what cannot be.
func ExampleSettings() {
	s := lease.Settings{HeartbeatTimeout: time.Minute, OperationTimeout: 2 * time.Second}
	fmt.Println("heartbeats each", s.Interval(), "trusted for", s.Window())
	s.HeartbeatInterval = 30 * time.Second
	fmt.Println(s.Validate())
	// Output:
	// heartbeats each 6s trusted for 50.5s
	// heartbeat-interval is 30s: it must be less than half of heartbeat-timeout (1m0s)
}

// What an implementation that registers itself does, and how its own block of the configuration reaches it.
func ExampleRegister() {
	lease.Register("example", func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		set := struct{ Place string }{Place: "nowhere"}
		if err := spec.Configure(&set); err != nil { // spec.Decode is nil here: the defaults stay
			return nil, err
		}
		fmt.Println("opening", spec.Name, "in", set.Place)
		return leasetest.NewMemory().View(spec.Owner), nil
	})
	store, err := lease.Open(context.Background(), "example", lease.Spec{Name: "payments-sbr", Owner: "node-1"})
	fmt.Println(store != nil, err, slices.Contains(lease.Implementations(), "example"))
	// Output:
	// opening payments-sbr in nowhere
	// true <nil> true
}

// A record whose token somebody has made as large as can be is repaired, with all members stopped. What
// becomes of it can be looked at before.
func ExampleReset() {
	store := leasetest.NewMemory()
	store.Restore(lease.Record{Holder: "nobody knows", Token: lease.MaxToken, Verdict: &sbr.Verdict{Token: 3}})
	r := store.Snapshot().Record
	planned, err := lease.Mended(&r, false)
	fmt.Println(planned.Token, err)
	_, after, err := lease.Reset(context.Background(), store.View("operator"), false)
	fmt.Printf("%q %d %d %v\n", after.Holder, after.Token, after.Verdict.Token, err)
	// Output:
	// 3 <nil>
	// "" 3 3 <nil>
}

// A member that leaves in peace is noted beside the verdict that it survived.
func ExampleLease_Amend() {
	store := leasetest.NewMemory()
	l, err := lease.New(store.View("a"), "a", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	ctx := context.Background()
	_, err = l.Acquire(ctx, lease.Proposal{Verdict: &sbr.Verdict{Survivors: []sbr.ID{"a", "b"},
		Down: []sbr.ID{"c"}}})
	fmt.Println(err)
	r, err := l.Amend(ctx, func(v *sbr.Verdict) bool { return v.Leave([]sbr.ID{"b"}, []sbr.ID{"a"}) })
	fmt.Println(r.Token, r.Verdict.Left, r.Verdict.Remaining(), err)
	// Output:
	// <nil>
	// 1 [b] [a] <nil>
}

// A store that lost its record is told again what it held, by a member that has seen it.
func ExampleLease_Restore() {
	store := leasetest.NewMemory()
	l, err := lease.New(store.View("a"), "a", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	ctx := context.Background()
	grant, err := l.Acquire(ctx, lease.Proposal{Verdict: &sbr.Verdict{Survivors: []sbr.ID{"a"},
		Down: []sbr.ID{"b"}}})
	fmt.Println(grant.Token(), err)
	store.Delete()
	r, err := l.Read(ctx)
	fmt.Println(r.Behind, r.Token, err)
	r, err = l.Restore(ctx, *grant.Record().Verdict)
	fmt.Println(r.Verdict.Survivors, err, store.Snapshot().Record.Token)
	// Output:
	// 1 <nil>
	// true 1 <nil>
	// [a] <nil> 1
}

// What a store shows, for programs that need no lease.
func ExampleFollow() {
	store := leasetest.NewMemory()
	store.Restore(lease.Record{Holder: "a", Token: 7})
	ctx, cancel := context.WithCancel(context.Background())
	err := lease.Follow(ctx, store, lease.Pace{}, nil, func(s lease.Snapshot) {
		fmt.Println(s.Record.Holder, s.Record.Token)
		cancel()
	})
	fmt.Println(err)
	// Output:
	// a 7
	// context canceled
}

// A lease goes to another store, as it is; the old record says where it has gone.
func ExampleMove() {
	old, fresh := leasetest.NewMemory(), leasetest.NewMemory()
	old.Restore(lease.Record{Holder: "a", Token: 7})
	ctx := context.Background()
	r, err := lease.Move(ctx, lease.Place{Store: old, Name: "old"}, lease.Place{Store: fresh, Name: "new"})
	fmt.Println(r.Holder, r.Token, err)
	fmt.Println(old.Snapshot().Record.Moved.Away(), fresh.Snapshot().Record.Moved.Away())
	b := open(old, "b")
	defer b.Close()
	_, err = b.Acquire(ctx, lease.Proposal{})
	fmt.Println(errors.As(err, new(*lease.MovedError)))
	// Output:
	// a 7 <nil>
	// true false
	// true
}

// A record as text, for a store that keeps text. One with columns of its own for some fields embeds a
// Document.
func ExampleMarshalRecord() {
	r := lease.Record{Holder: "a", Token: 7, TTL: time.Minute}
	text, err := lease.MarshalRecord(r)
	fmt.Println(strings.Contains(string(text), `"holder":"a"`), err)
	read, err := lease.UnmarshalRecord(text)
	fmt.Println(read.Token, err)
	_, err = lease.UnmarshalRecord([]byte(`{"format": 1, "hodler": "a", "token": 7}`))
	fmt.Println(err)
	d, err := lease.NewDocument(r)
	fmt.Println(d.TTL, err)
	read, err = d.Record()
	fmt.Println(read.TTL, err)
	// Output:
	// true <nil>
	// 7 <nil>
	// the field "holder" is missing
	// 1m0s <nil>
	// 1m0s <nil>
}

// The algorithm alone, in a time and over a store of one's own: each step takes an event and returns what is
// to be done.
func ExampleMachine() {
	settings := lease.DefaultSettings()
	least := func(time.Duration) time.Duration { return 0 } // a driver draws by chance
	m := lease.NewMachine("a", settings, settings.Window(), lease.DefaultBackoff(settings, least))
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(e lease.Event) {
		for _, effect := range m.Step(now, e) {
			switch effect := effect.(type) {
			case lease.Send:
				fmt.Printf("send %d, write: %t, holder: %q\n", effect.Request, effect.Write, effect.Record.Holder)
			case lease.Finished:
				fmt.Println("token", effect.Snapshot.Record.Token, effect.Err)
			}
		}
	}
	step(lease.Begin{Op: 1, Do: lease.AcquireOp{Nonce: "n1"}, Deadline: now.Add(settings.OperationTimeout)})
	step(lease.Answered{Request: 1}) // there is no record
	step(lease.Answered{Request: 2, Snapshot: lease.Snapshot{Version: "v1"}})
	at, _ := m.Deadline()
	fmt.Println("heartbeat in", at.Sub(now), "to wait:", m.Wait(now, &lease.Proposal{}))
	now = at
	step(lease.Tick{})
	step(lease.Failed{Request: 3, Err: errors.New("no answer")})
	fmt.Println("held:", m.Check(now), "and after three failures in a row an Acquire pauses for", m.Pause(3))
	step(lease.Begin{Op: 2, Do: lease.Restoration(sbr.Verdict{Token: 7}, "n2"),
		Deadline: now.Add(settings.OperationTimeout)})
	// the store has forgotten verdict 7
	step(lease.Answered{Request: 4, Snapshot: lease.Snapshot{Version: "v1"}})
	step(lease.Answered{Request: 5, Snapshot: lease.Snapshot{Version: "v2"}})
	leaves := func(v *sbr.Verdict) bool { return v.Leave([]sbr.ID{"b"}, []sbr.ID{"a"}) }
	step(lease.Begin{Op: 3, Do: lease.Amendment(leaves), Deadline: now.Add(settings.OperationTimeout)})
	// Output:
	// send 1, write: false, holder: ""
	// send 2, write: true, holder: "a"
	// token 1 <nil>
	// heartbeat in 12s to wait: 0s
	// send 3, write: true, holder: "a"
	// held: true and after three failures in a row an Acquire pauses for 160ms
	// send 4, write: false, holder: ""
	// send 5, write: true, holder: ""
	// token 7 <nil>
	// send 6, write: false, holder: ""
}

// An implementation's settings fall back to those for all, and these to the defaults.
func ExampleSettings_Or() {
	own := lease.Settings{OperationTimeout: 2 * time.Second}
	all := lease.Settings{HeartbeatTimeout: time.Minute}
	s := own.Or(all).Or(lease.DefaultSettings())
	fmt.Println(s.HeartbeatTimeout, s.Interval(), s.OperationTimeout)
	// Output: 1m0s 6s 2s
}

// Options are for tests and logs; each has a default.
func ExampleOptions() {
	l, err := lease.New(leasetest.NewMemory().View("a"), "a", lease.DefaultSettings(),
		lease.Options{Clock: lease.SystemClock()})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	fmt.Println(l.Owner(), l.Settings().HeartbeatTimeout)
	// Output: a 2m0s
}
