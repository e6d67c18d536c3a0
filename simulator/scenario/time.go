package scenario

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// Time is a time of a step: From, or with a Spread a range (10s..20s) from which the seed of each run draws
// one.
type Time struct {
	From time.Duration
	// Spread is what is drawn on top at most; zero: it is exactly From.
	Spread time.Duration
}

// Exactly is a time that is no range.
func Exactly(d time.Duration) *Time { return &Time{From: d} }

const (
	rangeSign    = ".."
	expectedTime = "a duration such as 20s, or a range such as 10s..20s"
)

// Last is the latest time that may be drawn.
func (t Time) Last() time.Duration { return t.From + t.Spread }

// String returns the time as it is written.
func (t Time) String() string {
	if t.Spread == 0 {
		return t.From.String()
	}
	return t.From.String() + rangeSign + t.Last().String()
}

// Expected says what is accepted.
func (*Time) Expected() string { return expectedTime }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Time) UnmarshalText(text []byte) error {
	from, to, ranged := strings.Cut(string(text), rangeSign)
	first, err := strictyaml.ParseDuration(from)
	if err == nil && !ranged {
		*t = Time{From: first}
		return nil
	}
	if !ranged {
		return errors.New(err.Error() + ", or a range such as 10s..20s")
	}
	last, err2 := strictyaml.ParseDuration(to)
	switch {
	case err != nil || err2 != nil:
		return fmt.Errorf("expected %s, found %.40q", expectedTime, text)
	case first < 0: // and no overflow below
		return fmt.Errorf("is %.40s: it begins before the start", text)
	case last == first:
		return fmt.Errorf("is %.40s, which is one time: write %v", text, first)
	case last < first:
		return fmt.Errorf("is %.40s: it ends before it begins", text)
	}
	*t = Time{From: first, Spread: last - first}
	return nil
}

// drawn is one time of the range, as round as people write it.
func (t Time) drawn(rng *rand.Rand) time.Duration {
	grain := time.Millisecond
	if t.Spread%grain != 0 {
		grain = 1
	}
	return t.From + time.Duration(rng.Int64N(int64(t.Spread/grain)+1))*grain
}

// draw is a range, and what a run makes of it.
type draw struct {
	place string
	from  Time
	at    time.Duration
}

// Drawn is the scenario as the run of a seed plays it: with one time in place of each range. Without ranges
// it is the scenario itself. The steps keep their places in the file; they happen by their times, so ranges
// may bring them in any order.
func (s *Scenario) Drawn(seed uint64) *Scenario {
	c, _ := s.drawn(seed)
	return c
}

func (s *Scenario) drawn(seed uint64) (*Scenario, []draw) {
	// apart from those of Build and Random, and one for each step, so that another range changes no other one
	const stream = 0xd4a3 << 32
	var draws []draw
	c := s
	for i := range s.Steps {
		var rng *rand.Rand
		for _, of := range []struct {
			key  string
			time func(st *Step) **Time
		}{
			{"at", func(st *Step) **Time { return &st.At }},
			{"for", func(st *Step) **Time { return &st.For }},
		} {
			t := *of.time(&s.Steps[i])
			if t == nil || t.Spread == 0 {
				continue
			}
			if rng == nil {
				rng = rand.New(rand.NewPCG(seed, stream|uint64(i)))
			}
			if c == s {
				copied := *s
				copied.Steps = slices.Clone(s.Steps)
				c = &copied
			}
			d := draw{fmt.Sprintf("steps[%d].%s", i, of.key), *t, t.drawn(rng)}
			*of.time(&c.Steps[i]), draws = Exactly(d.at), append(draws, d)
		}
	}
	return c, draws
}
