package downing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A paused process notices the pause, wherever it was, and a process that merely slept or worked does not.
func TestPauses(t *testing.T) {
	const limit = 2 * time.Second
	for _, tc := range []struct {
		name                  string
		work, planned, waited time.Duration
		gap                   time.Duration
	}{
		{name: "it slept as long as planned", planned: time.Second, waited: time.Second},
		{name: "a long sleep that was planned", planned: time.Hour, waited: time.Hour},
		{name: "woken early", planned: time.Hour, waited: time.Second},
		{name: "it overslept a little", planned: time.Second, waited: time.Second + limit - 1},
		{name: "it overslept", planned: time.Second, waited: time.Second + limit, gap: limit},
		{name: "it overslept for long", planned: 0, waited: 10 * time.Minute, gap: 10 * time.Minute},
		{name: "it worked a little", work: limit - 1, planned: time.Second, waited: time.Second},
		{name: "it stood still while it worked", work: time.Minute, planned: time.Second, waited: time.Second, gap: time.Minute},
		{name: "both: the longer one", work: 5 * time.Second, planned: 0, waited: time.Minute, gap: time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPauses(limit)
				time.Sleep(tc.work)
				p.waiting(tc.planned)
				time.Sleep(tc.waited)
				require.Equal(t, tc.gap, p.woke())
				p.waiting(time.Second)
				time.Sleep(time.Second)
				require.Zero(t, p.woke(), "a pause is reported once")
			})
		})
	}
}
