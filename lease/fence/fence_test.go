package fence

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errEffect = errors.New("the effect failed")

// shelf is a Storage in memory that can fail in both ways: before it has saved, and after.
type shelf struct {
	token                 uint64
	failBefore, failAfter error
}

func (s *shelf) Load() (uint64, error) { return s.token, s.failBefore }

func (s *shelf) Save(token uint64) error {
	if s.failBefore == nil {
		s.token = token
	}
	return errors.Join(s.failBefore, s.failAfter)
}

func TestFence_StaleErrorNamesBothTokens(t *testing.T) {
	f := New()
	require.NoError(t, f.Check(t.Context(), 12))
	err := f.Check(t.Context(), 11)
	var stale *StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, StaleError{Token: 11, Newest: 12}, *stale)
	require.ErrorIs(t, err, ErrStale)
	require.ErrorContains(t, err, "11 is older than 12")
	require.NotContains(t, err.Error(), "\n")
}

func TestFence_AnAcceptedTokenStaysWhenTheEffectFails(t *testing.T) {
	f := New()
	require.ErrorIs(t, f.Do(t.Context(), 5, func() error { return errEffect }), errEffect)
	require.PanicsWithValue(t, "no", func() { _ = f.Do(t.Context(), 6, func() error { panic("no") }) })
	require.ErrorIs(t, f.Check(t.Context(), 5), ErrStale)
	require.NoError(t, f.Check(t.Context(), 6), "a panic leaves the turn to others")
}

// The heart of it: a new owner cannot begin while the old one's effect goes on, and the old one cannot begin
// after that.
func TestFence_NobodyEntersDuringAnEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := New(), make(chan string, 9)
		finish := make(chan struct{})
		old := func() error { log <- "1 begins"; <-finish; log <- "1 ends"; return nil }
		go func() { _ = f.Do(t.Context(), 1, old) }()
		synctest.Wait()
		go func() {
			log <- "2 asks"
			_ = f.Do(t.Context(), 2, func() error { log <- "2 begins"; return nil })
		}()
		synctest.Wait()
		go func() { require.NoError(t, f.Check(t.Context(), 2)); log <- "2 is checked" }()
		synctest.Wait()
		go func() { require.ErrorIs(t, f.Do(t.Context(), 1, old), ErrStale); log <- "1 is refused" }()
		synctest.Wait()
		require.Len(t, log, 2, "1 begins, 2 asks")
		close(finish)
		synctest.Wait()
		require.ErrorIs(t, f.Do(t.Context(), 1, old), ErrStale)
		close(log)
		var got []string
		for line := range log {
			got = append(got, line)
		}
		require.Equal(t, []string{"1 begins", "2 asks", "1 ends", "2 begins", "2 is checked", "1 is refused"}, got)
	})
}

func TestFence_AWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, finish := New(), make(chan struct{})
		go func() { _ = f.Do(t.Context(), 1, func() error { <-finish; return nil }) }()
		synctest.Wait()
		never := func() error { t.Error("ran"); return nil }
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEffect)
		defer cancel()
		require.ErrorIs(t, f.Do(ctx, 2, never), errEffect)
		close(finish)
		synctest.Wait()
		for range 50 { // a choice between two that are ready would be by chance
			require.ErrorIs(t, f.Do(ctx, 2, never), errEffect, "free again, but too late for this one")
		}
		require.EqualValues(t, 1, f.Newest())
	})
}

func TestFence_WhatCannotBeRememberedIsNotAdmitted(t *testing.T) {
	for name, s := range map[string]*shelf{"not saved": {token: 3, failBefore: errEffect},
		"saved, perhaps": {token: 3, failAfter: errEffect}} {
		t.Run(name, func(t *testing.T) {
			before, after := s.failBefore, s.failAfter
			s.failBefore, s.failAfter = nil, nil
			f, err := Open(s)
			require.NoError(t, err)
			require.NoError(t, f.Check(t.Context(), 3))
			s.failBefore, s.failAfter = before, after
			err = f.Do(t.Context(), 4, func() error { t.Error("ran"); return nil })
			require.ErrorIs(t, err, errEffect)
			require.ErrorContains(t, err, "token 4")
			require.NoError(t, f.Check(t.Context(), 3), "nothing newer was admitted, and nothing has to be saved")
			s.failBefore, s.failAfter = nil, nil
			require.NoError(t, f.Check(t.Context(), 4))
			require.EqualValues(t, 4, s.token)
		})
	}
}

func TestOpen_WhatCannotBeReadIsNotZero(t *testing.T) {
	f, err := Open(&shelf{failBefore: errEffect})
	require.ErrorIs(t, err, errEffect)
	require.Nil(t, f)
}

// dumb is a Fence by its definition: it keeps everything it accepted, and looks through all of it.
type dumb struct{ accepted []uint64 }

func (d *dumb) ask(token uint64) (newest uint64, ok bool) {
	ok = token >= 1 && token <= Max
	for _, a := range d.accepted {
		newest = max(newest, a)
		ok = ok && token >= a
	}
	if ok {
		d.accepted = append(d.accepted, token)
		newest = token
	}
	return newest, ok
}

func TestProperty_FenceAgainstADumbTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		storage := &shelf{}
		f, err := Open(storage)
		require.NoError(t, err)
		twin := &dumb{}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				f, err = Open(storage)
				require.NoError(t, err)
			}
			token := rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64(),
				rapid.SampledFrom([]uint64{Max, Max + 1})).Draw(t, "token")
			newest, ok := twin.ask(token)
			ran := false
			err := f.Do(context.Background(), token, func() error { ran = true; return nil })
			require.Equal(t, ok, ran)
			require.Equal(t, ok, err == nil)
			require.Equal(t, err, f.Check(context.Background(), token), "without an effect")
			require.Equal(t, newest, f.Newest())
			if stale, ok := errors.AsType[*StaleError](err); ok {
				require.Equal(t, StaleError{Token: token, Newest: newest}, *stale)
			} else if err != nil {
				require.ErrorIs(t, err, ErrToken)
			}
		}
	})
}

// Many owners at once, each with tokens as they come: what went through is in order, one at a time.
func TestFence_ManyAtOnce(t *testing.T) {
	const owners, tries = 8, 300
	f := New()
	var order []uint64 // guarded by the fence alone, which the race detector checks
	var inside, through atomic.Int64
	var wg sync.WaitGroup
	for owner := range owners {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(owner), 1))
			for i := range tries {
				token := uint64(i + 1 + random.IntN(20))
				err := f.Do(context.Background(), token, func() error {
					if inside.Add(1) != 1 {
						t.Error("two at once")
					}
					order = append(order, token)
					inside.Add(-1)
					return nil
				})
				if err == nil {
					through.Add(1)
				} else if !errors.Is(err, ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.IsNonDecreasing(t, order)
	require.Len(t, order, int(through.Load()))
	require.NotEmpty(t, order)
	require.Equal(t, order[len(order)-1], f.Newest())
}

func TestValid(t *testing.T) {
	require.ErrorContains(t, valid(0), "not held")
	require.NoError(t, valid(1))
	require.Equal(t, lease.MaxToken, Max, "every token of a lease passes a fence")
	require.NoError(t, valid(Max))
	for _, token := range []uint64{0, Max + 1, math.MaxUint64} {
		require.ErrorIs(t, valid(token), ErrToken)
	}
}

var decimal = regexp.MustCompile(`^[1-9][0-9]*$`)

// Parse against a reading of the definition: a decimal number that a signed number of 64 bits can hold.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"1", "10", "0", "", "007", "-1", "+1", " 1", "1 ", "1\n", "1.0", "1e3", "0x1", "1_0", "١", "１", "nonsense",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551617",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(text)
		n, ok := new(big.Int).SetString(text, 10)
		if !ok || !decimal.MatchString(text) || !n.IsInt64() {
			require.ErrorIs(t, err, ErrToken)
			require.Zero(t, token)
			return
		}
		require.NoError(t, err)
		require.Equal(t, n.Uint64(), token)
		require.NoError(t, valid(token))
		require.Equal(t, text, Format(token))
	})
}
