//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Entry is one state of the lease that differs from the state before in its holder or verdict; without a
// token: there is no lease.
type Entry struct {
	// Seen is when it was heard of; Written is when the holder says that it was acquired.
	Seen, Written time.Time
	Holder        string
	Token         uint64
	Verdict       *sbr.Verdict
}

// Chain is every state of the lease, in order, heard of from the store while it is there. A lease that moves
// is in two of them, one after the other: it is one chain.
type Chain struct {
	ctx  context.Context //nolint:containedctx // ends what follows
	stop context.CancelFunc
	done sync.WaitGroup

	mu        sync.Mutex
	entries   []Entry
	forgotten int // how often the store was made to forget
}

func newChain() *Chain {
	c := &Chain{}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// follow takes in what becomes of the lease in a place.
func (c *Chain) follow(k *keep) {
	c.done.Go(func() {
		defer k.close()
		// A state that was skipped is a gap in the tokens, which verifyChain finds.
		pace := lease.Pace{RetryMax: time.Second, Beside: time.Second, Poll: pollEvery / 2}
		_ = lease.Follow(c.ctx, k.record, pace, nil, func(s lease.Snapshot) { c.takeRecord(&s) })
	})
}

// end stops following.
func (c *Chain) end() {
	c.stop()
	c.done.Wait()
}

func (c *Chain) takeRecord(s *lease.Snapshot) {
	r := &s.Record
	switch {
	case r.Moved.Away(): // it is elsewhere: the follower of that store tells
	case s.Version != "":
		// A free record says when it was acquired, too, and the state in between may have been skipped.
		c.add(Entry{Seen: time.Now(), Written: r.Acquired, Holder: r.Holder, Token: r.Token, Verdict: r.Verdict})
	case len(c.Entries()) > 0: // else nothing was written yet
		c.add(Entry{Seen: time.Now()})
	}
}

// add takes in a state that differs from the last one.
func (c *Chain) add(e Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.entries); n > 0 {
		if last := &c.entries[n-1]; last.Token == e.Token && last.Holder == e.Holder &&
			sameVerdict(last.Verdict, e.Verdict) {
			return
		}
	}
	c.entries = append(c.entries, e)
}

// forget notes that the store is about to be made to forget something.
func (c *Chain) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
}

// Entries are the states so far.
func (c *Chain) Entries() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.entries)
}

// Verdicts are the entries that brought a new verdict. A verdict that the store has forgotten and was told
// again is no new one.
func (c *Chain) Verdicts() []Entry {
	var all []Entry
	for _, e := range c.Entries() {
		known := func(x Entry) bool {
			return x.Verdict.Token == e.Verdict.Token && sameVerdict(x.Verdict, e.Verdict)
		}
		if e.Verdict != nil && e.Verdict.Token == e.Token && !slices.ContainsFunc(all, known) {
			all = append(all, e)
		}
	}
	return all
}

// ErrBroken is in the error of a chain that is not one.
var ErrBroken = errors.New("THE VERDICT CHAIN IS BROKEN")

// Verify checks what must hold of every chain: tokens grow by one, no member comes in under a token that
// another holds, every verdict downs a member, and a downed member neither writes nor survives later. The
// record vanishes or goes back only where the store was made to forget it; it is told again what it has
// known, and under one token there is one verdict.
func (c *Chain) Verify() error {
	c.mu.Lock()
	entries, forgotten := slices.Clone(c.entries), c.forgotten
	c.mu.Unlock()
	if err := verifyChain(entries, forgotten); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

func verifyChain(entries []Entry, forgotten int) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("verdict chain: "+format, args...))
	}
	downed := make(map[sbr.ID]uint64)
	verdicts := make(map[uint64]*sbr.Verdict)
	tokens := make(map[uint64]bool)
	newest := uint64(0)
	last := Entry{}
	for _, e := range entries {
		known := tokens[e.Token] && e.Token != last.Token // what is back, or told again
		switch {
		case e.Token < last.Token:
			if forgotten--; forgotten < 0 {
				fail("from token %d to %d", last.Token, e.Token)
			}
		case e.Token == last.Token:
			if e.Holder != "" && last.Holder != "" && e.Holder != last.Holder {
				fail("%s became the holder under the token %d of %s", e.Holder, e.Token, last.Holder)
			}
		case !known && e.Token != newest+1:
			fail("from token %d to %d", last.Token, e.Token)
		}
		if by, out := downed[sbr.ID(e.Holder)]; out && !known {
			fail("%s holds the lease under token %d although verdict %d downed it", e.Holder, e.Token, by)
		}
		if v := e.Verdict; v != nil && v.Token == e.Token {
			switch first, again := verdicts[v.Token]; {
			case again && !sameVerdict(first, v):
				fail("two verdicts under token %d: %s downed %v, and %s downed %v", v.Token, first.DecidedBy, first.Down,
					v.DecidedBy, v.Down)
				verdicts[v.Token] = v // said once
			case !again:
				verdicts[v.Token] = v
				errs = append(errs, verifyVerdict(v, downed))
			}
		}
		tokens[e.Token], newest, last = true, max(newest, e.Token), e
	}
	return errors.Join(errs...)
}

// verifyVerdict checks a new verdict against those before it, and adds the members that it downs.
func verifyVerdict(v *sbr.Verdict, downed map[sbr.ID]uint64) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("verdict chain: "+format, args...))
	}
	if len(v.Down) == 0 {
		fail("verdict %d downs nobody", v.Token)
	}
	for _, id := range v.Survivors {
		if by, out := downed[id]; out {
			fail("verdict %d keeps %s, which verdict %d downed", v.Token, id, by)
		}
	}
	for _, id := range v.Down {
		if _, before := downed[id]; !before {
			downed[id] = v.Token
		}
	}
	return errors.Join(errs...)
}

// sameVerdict reports whether two verdicts say the same of all members.
func sameVerdict(a, b *sbr.Verdict) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Token == b.Token && sameIDs(a.Survivors, b.Survivors) && sameIDs(a.Down, b.Down)
}

func sameIDs(a, b []sbr.ID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
