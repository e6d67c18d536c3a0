package drive_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// quiet is a cluster of one member in which nothing changes.
type quiet struct{ drive.Cluster }

func (quiet) Peers() downing.Peers {
	self := downing.Peer{Serves: []string{"x"}}
	self.ID, self.Name = "n1#u", "n1"
	return downing.Peers{Self: self.ID, State: sbr.StateUp, Sure: time.Now(), List: []downing.Peer{self}}
}
func (quiet) Follow(func()) (stop func())                          { return func() {} }
func (quiet) Downed() <-chan struct{}                              { return nil }
func (quiet) Left() <-chan struct{}                                { return nil }
func (quiet) OnDown(func(string))                                  {}
func (quiet) Serve(string, func(downing.Question)) (func(), error) { return func() {}, nil }
func (quiet) Offer(context.Context, string, bool) error            { return nil }
func (quiet) Config() downing.Config                               { return downing.Config{} }

// onlooker is a machine that wants nothing, and is finished once it has seen the cluster.
type onlooker struct{ seen []slot.View }

func (o *onlooker) Step(_ time.Duration, e slot.Event) []slot.Effect {
	if v, ok := e.(slot.Viewed); ok {
		o.seen = append(o.seen, v.View)
	}
	return nil
}
func (o *onlooker) Tick(time.Duration) []slot.Effect    { return nil }
func (o *onlooker) NextDeadline() (time.Duration, bool) { return 0, false }
func (o *onlooker) Until() (time.Duration, bool)        { return 0, false }
func (o *onlooker) Finished() bool                      { return len(o.seen) > 0 }

// A machine sees the cluster as it is when it begins. Its member may have offered the same before, and taken
// it back a moment ago, so that no change will ever be told.
func TestDriver_LooksAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, m := time.Now(), &onlooker{}
		d := drive.New(drive.Options[string]{Cluster: quiet{}, Topic: "x", Name: "x", What: "x",
			Log: slog.New(slog.DiscardHandler), Settled: func() {}})
		require.NoError(t, d.Begin(t.Context(), func(context.Context, *downing.Peer) error {
			d.Machine = m
			return nil
		}))
		require.NoError(t, d.Go(t.Context(), true))
		<-d.Over()
		require.Zero(t, time.Since(began))
		require.True(t, m.seen[0].Armed)
		require.True(t, m.seen[0].Peers[0].Candidate)
	})
}

// A member whose tags were never seen may have run anything: its margin begins, too.
func TestMargins_OfWhatMayHaveRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := func(id sbr.ID, serves string, unseen bool, ago time.Duration) downing.Departure {
			p := downing.Peer{Member: sbr.Member{ID: id}, Serves: []string{serves}, Unseen: unseen}
			return downing.Departure{Peer: p, At: time.Now().Add(-ago)}
		}
		p := downing.Peers{Gone: []downing.Departure{
			gone("serves", "x", false, 0), gone("other", "y", false, 0), gone("unseen", "", true, 0),
			gone("over", "x", true, time.Minute),
		}}
		require.Equal(t, []slot.Departure{{ID: "serves", Until: time.Minute}, {ID: "unseen", Until: time.Minute}},
			drive.Margins(p, "x", time.Minute))
	})
}
