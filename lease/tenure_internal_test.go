package lease

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type noStore struct{ Store }

// A loss in the very moment of the grant: the callback waits until Acquire has returned.
func TestLose_CallbackWaitsForAcquireToReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(noStore{}, "a", DefaultSettings(), Options{})
		require.NoError(t, err)
		defer l.Close()
		called := false
		returned := make(chan struct{})
		tn := &tenure{lost: func(error) { called = true }, returned: returned, end: context.CancelFunc(func() {})}
		l.tenure = tn
		l.lose(tn, ErrLost)
		synctest.Wait()
		assert.False(t, called)
		close(returned)
		synctest.Wait()
		assert.True(t, called)
	})
}
