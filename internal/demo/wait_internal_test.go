package demo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A machine that is busy for a minute is waited for, and the timeline says for what; not for ever.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		c := newCluster(DefaultOptions(), newJournal(func(e Event) { said = append(said, e.Detail) }))
		began := time.Now()
		after := func(d time.Duration) func() bool { return func() bool { return time.Since(began) >= d } }
		require.NoError(t, c.wait(context.Background(), "it is there", after(40*time.Second)))
		require.Equal(t, []string{
			"still waiting until it is there (15s)", "still waiting until it is there (30s)",
		}, said)
		err := c.wait(context.Background(), "it is there", after(time.Hour))
		require.EqualError(t, err, "waited 5m0s until it is there, in vain")
	})
}
