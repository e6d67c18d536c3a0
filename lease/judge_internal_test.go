package lease

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestJudge(t *testing.T) {
	const ttl = time.Minute
	v := &sbr.Verdict{}
	for name, c := range map[string]struct {
		p        Proposal
		holder   string
		silent   time.Duration
		patience time.Duration
		want     proposalCheck
	}{
		"free":                         {Proposal{}, "", 0, ttl, mayTake},
		"mine":                         {Proposal{}, "me", 0, ttl, mayTake},
		"another's":                    {Proposal{}, "x", ttl - 1, ttl, heldByOther},
		"silent for long enough":       {Proposal{}, "x", ttl, ttl, mayTake},
		"silent, but never expires":    {Proposal{}, "x", Infinite, Infinite, heldByOther},
		"one that may be replaced":     {Proposal{TakeOver: []string{"y", "x"}}, "x", 0, ttl, mayTake},
		"one that may not":             {Proposal{TakeOver: []string{"y"}}, "x", 0, ttl, heldByOther},
		"base fits, free":              {Proposal{Verdict: v, Base: 5}, "", 0, ttl, mayTake},
		"base fits, mine":              {Proposal{Verdict: v, Base: 5}, "me", 0, ttl, mayTake},
		"base fits, another's":         {Proposal{Verdict: v, Base: 5}, "x", 0, ttl, heldByOther},
		"base is old, free":            {Proposal{Verdict: v, Base: 4}, "", 0, ttl, superseded},
		"base is old, mine":            {Proposal{Verdict: v, Base: 4}, "me", 0, ttl, superseded},
		"base is old, may be replaced": {Proposal{Verdict: v, Base: 4, TakeOver: []string{"x"}}, "x", ttl, ttl, superseded},
		"base from the future":         {Proposal{Verdict: v, Base: 6}, "", 0, ttl, superseded},
		"base without a verdict":       {Proposal{Base: 4}, "", 0, ttl, mayTake},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, judge(&c.p, &Record{Holder: c.holder, Token: 5}, "me", c.silent, c.patience))
		})
	}
}

func TestBackoff_GrowsToItsCeilingAndSpreads(t *testing.T) {
	b := DefaultBackoff(Settings{OperationTimeout: 8 * time.Second}, rand.N[time.Duration])
	assert.Zero(t, b(1), "the first repetition follows at once")
	for n := 2; n < 100; n++ {
		full := min(time.Second, 10*time.Millisecond<<min(n-2, 20))
		for range 10 {
			d := b(n)
			assert.GreaterOrEqual(t, d, full/2)
			assert.LessOrEqual(t, d, full)
		}
	}
}
