package lock

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Between the grant and the moment when the work is known to those who end grants, the grant may end. The work is told all
// the same.
func TestStart_OfAWorkWhoseGrantHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		kind            Type
		held            bool
		token, releases uint64
		goes            bool
	}{
		"its own grant":                    {SingleEntrant, true, 2, 0, true},
		"released":                         {SingleEntrant, false, 2, 0, false},
		"another one's grant":              {SingleEntrant, true, 1, 0, false},
		"re-entered meanwhile":             {Reentrant, true, 1, 0, true},
		"re-entered or acquired again":     {Reentrant, true, 1, 1, false},
		"re-entrant, its own after all":    {Reentrant, true, 2, 1, true},
		"re-entrant, released":             {Reentrant, false, 2, 1, false},
		"overriding, re-entered meanwhile": {Overriding, true, 1, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := leasetest.NewMemory()
			k, err := New(store.View("a"), Config{Type: c.kind})
			require.NoError(t, err)
			defer k.Close()
			for range 2 {
				_, _ = k.Release(t.Context())
				_, err = k.Acquire(t.Context())
				require.NoError(t, err)
			}
			require.EqualValues(t, 2, k.Token())
			if !c.held {
				_, err = k.Release(t.Context())
				require.NoError(t, err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			k.start(&work{cancel: cancel}, c.token, k.releases-int(c.releases))
			assert.Equal(t, c.goes, ctx.Err() == nil)
			if !c.goes {
				assert.ErrorIs(t, context.Cause(ctx), ErrLost)
			}
		})
	}
}
