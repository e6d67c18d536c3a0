package drive

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// trusting is a machine that only says until when runs without a lease may go on.
type trusting struct{ until time.Duration }

func (m *trusting) Step(time.Duration, slot.Event) []slot.Effect { return nil }
func (m *trusting) NextDeadline() (time.Duration, bool)          { return 0, false }
func (m *trusting) Until() (time.Duration, bool)                 { return m.until, true }
func (m *trusting) Finished() bool                               { return false }

// wallBack is t with the wall clock d earlier and the monotonic clock as it is: what a clock that has been set
// ahead since, or a suspended machine, makes of it. Package time has no way to say that.
func wallBack(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(d/time.Second) << 30
	return t
}

// A wall clock that is set ahead ends the trust in what is known of the cluster once, until the next renewal:
// else no singleton and no shard would ever start here again.
func TestTrust_AWallClockThatIsSetCountsOnce(t *testing.T) {
	t.Parallel()
	m := &trusting{}
	d := New(Options[string]{})
	d.Machine, d.Origin, d.anchor = m, time.Now(), time.Now()
	renew := func() {
		m.until = d.Now() + time.Minute
		d.trustUntil()
	}
	renew()
	require.False(t, d.until.Passed())
	d.Origin, d.anchor = wallBack(d.Origin, time.Hour), wallBack(d.anchor, time.Hour)
	d.until.Set(wallBack(d.until.Time(), time.Hour))
	require.True(t, d.until.Passed(), "the machine may have been suspended for an hour")
	d.trustUntil()
	require.True(t, d.until.Passed(), "nothing is newer")
	renew()
	require.True(t, d.until.Passed(), "what is newer may be older than the end of that hour")
	renew()
	require.False(t, d.until.Passed())
}
