package drive_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// quiet is a cluster of one member in which nothing changes.
type quiet struct {
	drive.Cluster
	unsure time.Duration // for how long its membership was not confirmed
}

func (q quiet) Peers() downing.Peers {
	self := downing.Peer{Serves: []string{"x"}}
	self.ID, self.Name = "n1#u", "n1"
	return downing.Peers{Self: self.ID, State: sbr.StateUp, Sure: time.Now().Add(-q.unsure), List: []downing.Peer{self}}
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
		v := firstView(t, quiet{})
		require.True(t, v.Armed)
		require.True(t, v.Peers[0].Candidate)
	})
}

// firstView is what a machine sees at once when it begins.
func firstView(t *testing.T, c quiet) slot.View {
	t.Helper()
	began, m := time.Now(), &onlooker{}
	d := drive.New(drive.Options[string]{Cluster: c, Topic: "x", Name: "x", What: "x",
		Rules: slot.Rules{Trust: time.Minute},
		Log:   slog.New(slog.DiscardHandler), Settled: func() {}})
	require.NoError(t, d.Begin(t.Context(), func(context.Context, *downing.Peer) error {
		d.Machine = m
		return nil
	}))
	require.NoError(t, d.Go(t.Context(), true))
	<-d.Over()
	require.Zero(t, time.Since(began))
	return m.seen[0]
}

// What was confirmed before a manager began counts for as long as it is trusted, not from its beginning on.
func TestDriver_AnOldConfirmationIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		require.Zero(t, firstView(t, quiet{unsure: time.Minute - 1}).Sure)
		require.Negative(t, firstView(t, quiet{unsure: time.Minute}).Sure)
	})
}

// scripted answers events by effects, and is finished after the end of a run.
type scripted struct {
	onlooker
	step func(slot.Event) []slot.Effect
	over bool
}

func (s *scripted) Finished() bool { return s.over }
func (s *scripted) Step(_ time.Duration, e slot.Event) []slot.Effect {
	if _, ok := e.(slot.RunEnded); ok {
		s.over = true
	}
	return s.step(e)
}

// A run whose lease is lost is told at once: nothing that the manager waits for meanwhile delays that.
func TestDriver_ARunEndsWithItsLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ opening, loop bool }{
		"while another lease is opened": {opening: true}, "while the loop stands still": {loop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stores := map[string]*leasetest.Memory{"0": leasetest.NewMemory(), "1": leasetest.NewMemory()}
				goOn, told := make(chan struct{}), make(chan error, 1)
				asked, runs := false, false
				m := &scripted{step: func(e slot.Event) []slot.Effect {
					switch e := e.(type) {
					case slot.Viewed:
						if !asked {
							asked = true
							return []slot.Effect{slot.AcquireLease{Shard: 0, Attempt: 1}}
						}
					case slot.LeaseAnswer:
						if e.Shard == 0 {
							return []slot.Effect{slot.Start{Shard: 0, Run: 1, Token: e.Token},
								slot.AcquireLease{Shard: 1, Attempt: 1}}
						}
					case slot.LeaseLost:
						return []slot.Effect{slot.Stop{Shard: 0, Run: 1, Cause: slot.CauseLeaseLost, Why: e.Why}}
					}
					return nil
				}}
				times := lease.DefaultSettings()
				d := drive.New(drive.Options[string]{Cluster: quiet{}, Topic: "x", Name: "x", What: "x", Slots: 2,
					Log: slog.New(slog.DiscardHandler), Explained: func(slot.Explain) []any { return nil },
					Settled: func() {
						if c.loop && runs {
							<-goOn
						}
					},
					Happened: func(drive.Moment, *drive.Run, string) { runs = true },
					Ended:    func(*drive.Run, error, time.Duration) slot.RunEnded { return slot.RunEnded{} },
					Function: func(*drive.Run) func(context.Context) error {
						return func(ctx context.Context) error {
							<-ctx.Done()
							told <- context.Cause(ctx)
							return nil
						}
					},
					Lease: drive.LeaseOptions{Settings: times, Log: slog.New(slog.DiscardHandler),
						Name: strconv.Itoa, Use: strconv.Itoa,
						Store: func(name string) (lease.Store, error) {
							if name == "1" && c.opening {
								<-goOn
							}
							return stores[name].View(name), nil
						}}})
				require.NoError(t, d.Begin(t.Context(), func(context.Context, *downing.Peer) error {
					d.Machine = m
					return nil
				}))
				require.NoError(t, d.Go(t.Context(), true))
				synctest.Wait()
				require.Empty(t, told)
				stores["0"].View("0").SetUnavailable(true)
				time.Sleep(times.HeartbeatTimeout)
				synctest.Wait()
				require.Len(t, told, 1)
				require.ErrorIs(t, <-told, slot.CauseLeaseLost)
				close(goOn)
				<-d.Over()
			})
		})
	}
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
