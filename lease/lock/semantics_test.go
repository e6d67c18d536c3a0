package lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// The semantics of the three types, as a table:
//
//	               | acquire           | same owner again           | other owner's live lock | release
//	single-entrant | absent or expired | false                      | false                   | only the owner's, not expired
//	re-entrant     | absent or expired | true, duration starts anew | false                   | the same; one for all entries
//	overriding     | always            | true, duration starts anew | true (takes it)         | anybody's live lock, else false
var semantics = []struct {
	kind                               lock.Type
	again, othersLive, releaseOfOthers bool
}{
	{kind: lock.SingleEntrant, again: false, othersLive: false, releaseOfOthers: false},
	{kind: lock.Reentrant, again: true, othersLive: false, releaseOfOthers: false},
	{kind: lock.Overriding, again: true, othersLive: true, releaseOfOthers: true},
}

// rule runs one rule for each type of the table, in virtual time.
func rule(t *testing.T, name string, check func(t *testing.T, w *world, row int)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for i, row := range semantics {
			t.Run(row.kind.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) { check(t, w, i) })
			})
		}
	})
}

func TestSemantics_Acquire(t *testing.T) {
	rule(t, "absent: true", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		assert.True(t, w.acquire(a))
		assert.True(t, a.Held())
		assert.Equal(t, "a", w.record().Holder)
		assert.Equal(t, d, w.record().TTL)
	})
	rule(t, "released: true", func(t *testing.T, w *world, i int) {
		a, b := w.lock("a", semantics[i].kind), w.lock("b", semantics[i].kind)
		require.True(t, w.acquire(a))
		require.True(t, w.release(a))
		assert.True(t, w.acquire(b))
	})
	rule(t, "expired: true, at the very moment", func(t *testing.T, w *world, i int) {
		b := w.lock("b", semantics[i].kind)
		require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
		require.Equal(t, semantics[i].othersLive, w.acquire(b), "b has looked")
		if semantics[i].othersLive {
			return // always
		}
		time.Sleep(d - time.Nanosecond)
		require.False(t, w.acquire(b))
		time.Sleep(time.Nanosecond)
		assert.True(t, w.acquire(b))
	})
	rule(t, "one's own expired: true, at the very moment", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		time.Sleep(d - time.Nanosecond)
		require.Equal(t, semantics[i].again, w.acquire(a))
		if semantics[i].again {
			return // always
		}
		time.Sleep(time.Nanosecond)
		assert.True(t, w.acquire(a))
	})
	rule(t, "same owner again", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		assert.Equal(t, semantics[i].again, w.acquire(a))
		assert.True(t, a.Held(), "either way")
	})
	rule(t, "same owner again, by another object", func(t *testing.T, w *world, i int) {
		require.True(t, w.acquire(w.lock("a", semantics[i].kind)))
		assert.Equal(t, semantics[i].again, w.acquire(w.lock("elsewhere", semantics[i].kind, owner("a"))))
	})
	rule(t, "another owner's live lock", func(t *testing.T, w *world, i int) {
		a, b := w.lock("a", lock.Reentrant), w.lock("b", semantics[i].kind)
		require.True(t, w.acquire(a))
		assert.Equal(t, semantics[i].othersLive, w.acquire(b))
		assert.Equal(t, semantics[i].othersLive, b.Held())
	})
	rule(t, "the duration of another acquire counts", func(t *testing.T, w *world, i int) {
		if !semantics[i].again {
			return // its second acquire is refused: there is no other duration
		}
		a, b := w.lock("a", semantics[i].kind), w.lock("b", lock.SingleEntrant)
		for _, next := range []time.Duration{lock.Forever, time.Minute, time.Hour, lock.Forever, time.Second} {
			require.True(t, w.acquireFor(a, next))
			require.False(t, w.acquire(b))
			if next == lock.Forever {
				time.Sleep(1000 * time.Hour)
				require.False(t, w.acquire(b))
				require.True(t, a.Held())
				continue
			}
			time.Sleep(next / 2)
			require.True(t, w.acquireFor(a, next), "starts anew")
			require.False(t, w.acquire(b))
			time.Sleep(next - time.Nanosecond)
			require.False(t, w.acquire(b), "%v", next)
		}
		time.Sleep(time.Nanosecond)
		require.True(t, w.acquire(b))
	})
}

func TestSemantics_Release(t *testing.T) {
	rule(t, "one's own: true, a second time: false", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		assert.True(t, w.release(a))
		assert.False(t, a.Held())
		assert.False(t, w.release(a))
	})
	rule(t, "once for all entries", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		require.Equal(t, semantics[i].again, w.acquire(a))
		assert.True(t, w.release(a))
		assert.False(t, w.release(a))
		assert.True(t, w.acquire(w.lock("b", lock.SingleEntrant)))
	})
	rule(t, "without an acquire: false", func(t *testing.T, w *world, i int) {
		assert.False(t, w.release(w.lock("a", semantics[i].kind)))
	})
	rule(t, "one's own expired: false", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		time.Sleep(d)
		assert.False(t, w.release(a))
	})
	rule(t, "one's own just before it expires: true, although it is not used any more", func(t *testing.T, w *world, i int) {
		a := w.lock("a", semantics[i].kind)
		require.True(t, w.acquire(a))
		time.Sleep(d - time.Nanosecond)
		require.False(t, a.Held())
		assert.True(t, w.release(a))
		assert.Empty(t, w.record().Holder)
	})
	rule(t, "another owner's live lock", func(t *testing.T, w *world, i int) {
		a, b := w.lock("a", lock.SingleEntrant), w.lock("b", semantics[i].kind)
		require.True(t, w.acquire(a))
		assert.Equal(t, semantics[i].releaseOfOthers, w.release(b))
		assert.Equal(t, semantics[i].releaseOfOthers, w.record().Holder == "")
		assert.Equal(t, !semantics[i].releaseOfOthers, w.release(a))
	})
	rule(t, "another owner's expired lock: false", func(t *testing.T, w *world, i int) {
		if semantics[i].releaseOfOthers {
			return // it cannot look without taking or freeing: see the price below
		}
		b := w.lock("b", semantics[i].kind)
		require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
		require.False(t, w.release(b), "b has looked")
		time.Sleep(d)
		assert.False(t, w.release(b))
		assert.True(t, w.acquire(b))
	})
	rule(t, "the lock of another object with the same owner: true", func(t *testing.T, w *world, i int) {
		require.True(t, w.acquire(w.lock("a", semantics[i].kind)))
		assert.True(t, w.release(w.lock("elsewhere", semantics[i].kind, owner("a"))))
		assert.Empty(t, w.record().Holder)
	})
	rule(t, "by force: whoever's, once", func(t *testing.T, w *world, i int) {
		b := w.lock("b", semantics[i].kind)
		require.False(t, w.sure(b.ForceRelease(t.Context())), "nobody's")
		require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
		assert.True(t, w.sure(b.ForceRelease(t.Context())))
		assert.False(t, w.sure(b.ForceRelease(t.Context())))
		assert.True(t, w.acquire(b))
	})
}

// What the table cannot say: nobody believes the times in the record, so time counts from when one has first looked.
func TestSemantics_ThePriceOfNotBelievingClocks(t *testing.T) {
	t.Run("who has never looked waits a whole duration", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
			time.Sleep(1000 * d)
			b := w.lock("b", lock.SingleEntrant)
			assert.False(t, w.acquire(b))
			time.Sleep(d - time.Nanosecond)
			assert.False(t, w.acquire(b))
			time.Sleep(time.Nanosecond)
			assert.True(t, w.acquire(b))
		})
	})
	t.Run("who has never looked takes an expired lock for a live one when it releases it", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
			time.Sleep(d)
			assert.True(t, w.release(w.lock("admin", lock.Overriding)))
		})
	})
	t.Run("the holder stops first", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			a := w.lock("a", lock.SingleEntrant)
			require.True(t, w.acquire(a))
			time.Sleep(usable - time.Nanosecond)
			assert.True(t, a.Held())
			assert.EqualValues(t, 1, a.Token())
			time.Sleep(time.Nanosecond)
			assert.False(t, a.Held())
			assert.Zero(t, a.Token())
			assert.Less(t, usable, d-d/8)
		})
	})
}
