package linear

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Play makes the client do steps random operations, and look after each. One of three is in a hurry: it is
// given up after some part of haste. before is called ahead of each. A client that may hold the lease soon
// releases it, so that others get it.
func (c *Client) Play(ctx context.Context, random *rand.Rand, steps int, haste time.Duration, before func()) {
	mine := false
	for range steps {
		before()
		mine = c.play(ctx, random, haste, mine)
		c.Look()
	}
}

// play does one operation and tells whether the lease may be held now.
func (c *Client) play(ctx context.Context, random *rand.Rand, haste time.Duration, mine bool) bool {
	if random.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.Int64N(int64(haste))))
		defer cancel()
	}
	switch n := random.IntN(100); {
	case mine && n < 75, n < 5:
		_ = c.Release(ctx)
		return false
	case n < 15:
		_, _ = c.Read(ctx)
		return mine
	case n < 60:
		return c.Acquire(ctx, nil) != sbr.Held
	default:
		return c.Acquire(ctx, c.survivors(random)) != sbr.Held || mine
	}
}

// survivors proposes who goes on: those of the last verdict seen, but for one at the most. The first verdict
// lists everybody.
func (c *Client) survivors(random *rand.Rand) []sbr.ID {
	all := set(1)<<63 - 1
	if v := c.seen.Verdict; v != nil {
		all = setOf(v.Survivors)
	}
	return append([]sbr.ID{}, idsOf(all&^(1<<random.IntN(63)))...)
}
