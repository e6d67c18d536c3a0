package downing_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The agent falls silent while everything else is well: suspended at once, up again when it answers.
func TestBeside_SilentAgent_SuspendsAtOnceAndResumes(t *testing.T) {
	m := newMeters(t)
	beside(t, 3, m.config, func(t *testing.T, b *besides) {
		var calls []string
		b.provider("n1").OnSuspend(func(why string) { calls = append(calls, "suspend: "+why) })
		b.provider("n1").OnResume(func(why string) { calls = append(calls, "resume: "+why) })
		require.Nil(t, b.provider("n1").Status().MembersAsOf)
		silent := time.Now()
		b.agents["n1"].setSilent(true)
		time.Sleep(10 * time.Millisecond)
		s := b.provider("n1").Status()
		require.Equal(t, sbr.StateSuspended, s.State)
		require.Equal(t, "the Serf agent does not answer", s.SuspendedBecause)
		require.NotNil(t, s.SuspendedSince)
		require.Len(t, s.Members, 3, "what was known is still shown")
		require.NotNil(t, s.MembersAsOf, "it is old")
		require.WithinRange(t, *s.MembersAsOf, silent, time.Now())
		time.Sleep(5 * time.Second)
		m.require("n1", "sbr.agent.unreachable = 1", "sbr.agent.unreachable.time > 3",
			"sbr.agent.failures{reason=timeout} = 1",
			"sbr.suspensions{cause=agent} = 1", "sbr.partitions{cause=agent} = 1")
		b.agents["n1"].setSilent(false)
		b.Eventually(10*time.Second, "it does not resume", func() bool { return b.state("n1") == sbr.StateUp })
		require.Nil(t, b.provider("n1").Status().MembersAsOf)
		b.Whole(3)
		require.Empty(t, b.Store.History())
		require.True(t, b.askedForItsFate("n1"))
		synctest.Wait()
		require.Len(t, calls, 2)
		require.Equal(t, "suspend: the Serf agent does not answer", calls[0])
		require.Contains(t, calls[1], "resume: ")
		m.require("n1", "sbr.agent.unreachable = 0", "sbr.agent.unreachable.time < 7")
	})
}

// An agent that refuses a removal is asked again.
func TestBeside_RefusedRemovalIsTriedAgain(t *testing.T) {
	m := newMeters(t)
	config := func(name string, c *downing.Config) { m.config(name, c); clustertest.MajorityFirst(name, c) }
	beside(t, 3, config, func(t *testing.T, b *besides) {
		b.agents["n1"].refuseRemovals(errors.New("refused"))
		require.NoError(t, b.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		b.Eventually(time.Minute, "n3 is up", func() bool { return b.Member("n3").Down() })
		time.Sleep(30 * time.Second)
		m.require("n1", "sbr.removals{outcome=failed} > 1")
	})
}

// An agent that stays silent takes its member down, in time, and the others go on without it.
func TestBeside_SilentAgent_GoesDown(t *testing.T) {
	for name, fail := range map[string]func(*stockAgent){
		"hangs": func(a *stockAgent) { a.setSilent(true) },
		"dies":  func(a *stockAgent) { a.halt() },
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, 3, clustertest.MajorityFirst, func(t *testing.T, b *besides) {
				began := time.Now()
				fail(b.agents["n1"])
				require.NoError(t, b.Net.Partition([]string{"n1"}, []string{"n2", "n3"})) // nobody hears of it any more
				<-b.provider("n1").Downed()
				took := time.Since(began)
				require.Greater(t, took, 14*time.Second)
				require.LessOrEqual(t, took, downing.DefaultConfig().AgentTimeout+2*downing.DefaultConfig().PollInterval+
					2*time.Second)
				require.Contains(t, b.provider("n1").Reason(), "the Serf agent did not answer for 15s: time-out")
				<-b.provider("n1").Done()
				for _, m := range b.provider("n1").Status().Members {
					require.Equal(t, m.Name != "n1", m.Reachable && m.Status == sbr.Up.String(), "it calls itself reachable")
				}
				b.Eventually(2*time.Minute, "it is not removed",
					func() bool { return len(b.provider("n2").Status().Members) == 2 })
				require.Equal(t, []string{"n2", "n3"}, b.Up())
			})
		})
	}
}

// A leader that sees nothing decides nothing, though it had a decision to make a moment ago.
func TestBeside_Blind_DecidesNothing(t *testing.T) {
	long := func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.AgentTimeout = 10 * time.Minute
	}
	beside(t, 5, long, func(t *testing.T, b *besides) {
		require.NoError(t, b.Net.Partition(upper, lower))
		b.Eventually(time.Minute, "it sees no partition",
			func() bool { return b.provider("n1").Status().Deadline != nil })
		for _, name := range []string{"n1", "n2", "n3"} {
			b.agents[name].setSilent(true)
		}
		time.Sleep(9 * time.Minute)
		for _, name := range []string{"n1", "n2", "n3"} {
			require.False(t, b.Member(name).Down() && !strings.Contains(b.provider(name).Reason(), "verdict"),
				b.provider(name).Reason())
			for _, o := range b.Occurred(name) {
				require.NotContains(t, []string{downing.OccurredAsking, string(sbr.TopicDecision)}, o.Kind)
			}
		}
	})
}

// What was decided elsewhere still downs a member that sees nothing: it watches the lease.
func TestBeside_Blind_ObeysAVerdict(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		b.agents["n3"].setSilent(true)
		time.Sleep(time.Second)
		b.Store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: "other#u",
			Reason: "somebody else won"}})
		time.Sleep(100 * time.Millisecond)
		require.True(t, b.Member("n3").Down())
		require.Contains(t, b.provider("n3").Reason(), "somebody else won")
	})
}

// The agent answers again after the others have removed its member: it learns that before it resumes.
func TestBeside_AnswersAgainAfterTheVerdict(t *testing.T) {
	late := func(name string, c *downing.Config) {
		clustertest.MajorityFirst(name, c)
		c.AgentTimeout = time.Hour
		c.Resolver.Watched = false
	}
	beside(t, 3, late, func(t *testing.T, b *besides) {
		var resumed atomic.Bool
		b.provider("n1").OnResume(func(string) { resumed.Store(true) })
		b.agents["n1"].setSilent(true)
		require.NoError(t, b.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		b.Eventually(3*time.Minute, "the others do not decide", func() bool { return len(b.Store.History()) == 1 })
		time.Sleep(time.Minute)
		b.Net.Heal()
		b.agents["n1"].setSilent(false)
		b.Eventually(time.Minute, "it does not learn its fate", func() bool { return b.Member("n1").Down() })
		require.Equal(t, []string{"n2", "n3"}, b.Up())
		require.False(t, resumed.Load(), "it resumed before it knew")
	})
}

// askedForItsFate reports whether a member asked, as after a pause of its process.
func (b *besides) askedForItsFate(name string) bool {
	return slices.ContainsFunc(b.Occurred(name),
		func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicPaused) })
}

// stopKeeping stops a provider as an upgrade does: its incarnation is to be gone on with.
func (b *besides) stopKeeping(name string) downing.Status {
	b.t.Helper()
	s := b.provider(name).Status()
	require.NoError(b.t, b.Member(name).Stop())
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.announced, name)
	return s
}

func keepTags(_ string, c *downing.Config) { c.KeepTags = true }

func TestBeside_Adoption_GoesOn(t *testing.T) {
	beside(t, 3, keepTags, func(t *testing.T, b *besides) {
		before := b.stopKeeping("n3")
		time.Sleep(time.Second)
		m := b.protect("n3")
		require.Equal(t, before.Incarnation, m.Provider.Status().Incarnation)
		b.Whole(3)
		require.Nil(t, m.Provider.Status().SuspendedSince)
		require.True(t, b.askedForItsFate("n3"))
		require.Empty(t, b.Store.History())
	})
}

// The others compare reports by the age of the incarnation that sent them. What the next process says of
// its links counts at once, and not only when that process is as old as the earlier one was.
func TestBeside_Adoption_ItsReportsCount(t *testing.T) {
	beside(t, 4, keepTags, func(t *testing.T, b *besides) {
		reported := func() bool {
			return slices.ContainsFunc(b.provider("n1").Status().Reports, func(r downing.ReportStatus) bool {
				return r.Observer == "n3" && r.Subject == "n4"
			})
		}
		cut := func(what string) {
			require.NoError(t, b.Net.Cut("n3", "n4"))
			b.Eventually(20*time.Second, what, reported)
			b.Net.Heal()
			b.Whole(4)
			b.Eventually(2*time.Minute, "the report outlives its link", func() bool { return !reported() })
		}
		time.Sleep(10 * time.Minute)
		cut("n1 does not hear of the first cut")
		before := b.stopKeeping("n3")
		m := b.protect("n3")
		require.Equal(t, before.Incarnation, m.Provider.Status().Incarnation)
		b.Whole(4)
		cut("n1 does not hear of the second cut")
	})
}

// An incarnation that was downed while its process was away is down as soon as it is gone on with, and
// nothing resumes before.
func TestBeside_Adoption_DownedMeanwhile(t *testing.T) {
	beside(t, 3, keepTags, func(t *testing.T, b *besides) {
		before := b.stopKeeping("n3")
		var survivors []sbr.ID
		for _, m := range before.Members {
			if m.Incarnation != before.Incarnation {
				survivors = append(survivors, sbr.ID(m.Incarnation))
			}
		}
		b.Store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: survivors[0],
			Survivors: survivors, Down: []sbr.ID{sbr.ID(before.Incarnation)}, Reason: "it was away"}})
		var resumed atomic.Bool
		m := b.protect("n3")
		m.Provider.OnResume(func(string) { resumed.Store(true) })
		time.Sleep(time.Second)
		require.True(t, b.Member("n3").Down())
		require.Contains(t, m.Provider.Reason(), "it was away")
		<-m.Provider.Done()
		require.False(t, resumed.Load())
		require.Equal(t, []string{"n1", "n2"}, b.Up())
	})
}

// The same without a lease: only the members know. It asks them before it resumes.
func TestBeside_Adoption_DownedMeanwhileWithoutALease(t *testing.T) {
	majority := func(name string, c *downing.Config) {
		c.KeepTags, c.Strategy, c.Store = true, "keep-majority", nil
	}
	beside(t, 3, majority, func(t *testing.T, b *besides) {
		b.stopKeeping("n3")
		decided := func() bool {
			return slices.ContainsFunc(b.Occurred("n1"),
				func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicDecision) })
		}
		b.Eventually(2*time.Minute, "nothing is decided against it", decided)
		time.Sleep(30 * time.Second)
		m := b.protect("n3")
		var resumed atomic.Bool
		m.Provider.OnResume(func(string) { resumed.Store(true) })
		b.Eventually(time.Minute, "it does not learn its fate", func() bool { return b.Member("n3").Down() })
		require.False(t, resumed.Load())
	})
}

func TestBeside_Adoption_NotOfWhatWasDownedHere(t *testing.T) {
	beside(t, 3, keepTags, func(t *testing.T, b *besides) {
		before := b.stopKeeping("n3")
		m := b.protect("n3", func(c *downing.Config) {
			c.Memory = remembering(t, `{"incarnation": "`+before.Incarnation+`", "over": true}`)
		})
		after := m.Provider.Status()
		require.NotEqual(t, before.Incarnation, after.Incarnation)
		require.NotEqual(t, sbr.StateSuspended, after.State)
		b.Whole(3)
	})
}

// A provider that is stopped takes its tags back: the others count its node no more, at once and without
// unrest.
func TestBeside_Stop_TakesTheTagsBack(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		require.NoError(t, b.Member("n3").Stop())
		tags := b.agents["n3"].node.LocalMember().Tags
		require.Equal(t, "blue", tags["team"], "those of others stay")
		require.Empty(t, tags[downing.TagUID])
		for _, key := range []string{downing.TagBorn, downing.TagSeen, downing.TagConfig, downing.TagProbe} {
			require.NotContains(t, tags, key)
		}
		b.Eventually(2*time.Second, "it still counts", func() bool {
			s := b.provider("n1").Status()
			return slices.Equal(s.Untagged, []string{"n3"}) && len(s.Members) == 3 && s.State == sbr.StateUp
		})
		time.Sleep(time.Minute)
		require.Equal(t, sbr.StateUp, b.state("n1"))
		require.Empty(t, b.Store.History())
	})
}

// An operator makes the agent leave: that is a leave and no failure.
func TestBeside_AgentLeaves(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		node := b.agents["n3"].node
		require.NoError(t, node.Leave())
		time.Sleep(time.Second)
		require.NoError(t, node.Shutdown())
		<-b.provider("n3").Left()
		require.False(t, b.Member("n3").Down())
		b.Eventually(10*time.Second, "it has not left",
			func() bool { return len(b.provider("n1").Status().Members) == 2 })
		time.Sleep(time.Minute)
		require.False(t, b.Member("n3").Down())
		require.Empty(t, b.Store.History())
	})
}

// The restored tags are the resolver's own: whatever an operator has set meanwhile stays.
func TestBeside_TagsAreKept(t *testing.T) {
	beside(t, 2, nil, func(t *testing.T, b *besides) {
		id := b.provider("n2").Status().Incarnation
		require.NoError(t, b.agents["n2"].node.SetTags(map[string]string{"team": "green"}))
		b.Eventually(5*time.Second, "its tags are not put back", func() bool {
			tags := b.agents["n2"].node.LocalMember().Tags
			return tags["team"] == "green" && strings.HasSuffix(id, "#"+tags[downing.TagUID]) &&
				tags[downing.TagProbe] != ""
		})
		b.Whole(2)
	})
}

// broken is an agent that fails at something.
type broken struct {
	*stockAgent
	open, tag error
	closed    int
}

func (a *broken) Open(ctx context.Context, events downing.AgentEvents) (serf.Member, error) {
	if a.open != nil {
		return serf.Member{}, a.open
	}
	return a.stockAgent.Open(ctx, events)
}

func (a *broken) Tag(ctx context.Context, set map[string]string, remove []string) error {
	if a.tag != nil {
		return a.tag
	}
	return a.stockAgent.Tag(ctx, set, remove)
}

func (a *broken) Close() {
	a.closed++
	a.stockAgent.Close()
}

// A start that fails leaves nothing behind and can be tried again.
func TestBeside_StartFailsAndIsTriedAgain(t *testing.T) {
	beside(t, 0, nil, func(t *testing.T, b *besides) {
		a := &broken{stockAgent: &stockAgent{c: b.cluster, name: "n1"}}
		b.agents["n1"] = a.stockAgent
		a.boot(nil)
		m := b.NewMember("n1")
		m.Serf = a.node
		p := m.Provider
		prober := &probes{b: b, agent: a.stockAgent}

		a.open = errors.New("refused")
		require.ErrorIs(t, p.Beside(t.Context(), a, prober), a.open)
		a.open, a.tag = nil, errors.New("no tags")
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		require.ErrorIs(t, p.Beside(short, a, prober), a.tag)
		cancel()
		require.Equal(t, 1, a.closed)
		a.tag = nil
		b.Store.View("n1").SetUnavailable(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		require.ErrorIs(t, p.Beside(ctx, a, prober), context.DeadlineExceeded)
		cancel()
		require.Equal(t, 2, a.closed)
		require.Empty(t, a.node.LocalMember().Tags[downing.TagUID], "it is no member before it has read the lease")
		b.Store.View("n1").SetUnavailable(false)
		require.NoError(t, p.Beside(t.Context(), a, prober))
		require.ErrorIs(t, p.Beside(t.Context(), a, prober), downing.ErrStarted)
		b.Whole(1)
	})
}

// The agent restarts and forgets its tags for a moment: its member has not gone, so no side looks smaller or
// whole meanwhile.
func TestBeside_AgentRestart_IsNoDeparture(t *testing.T) {
	beside(t, 3, nil, func(t *testing.T, b *besides) {
		id := b.provider("n3").Status().Incarnation
		a := b.agents["n3"]
		a.halt()
		a.setSilent(true) // the RPC client connects later
		a.boot(nil, "n1")
		counted := func() bool {
			return slices.ContainsFunc(b.provider("n1").Status().Members,
				func(m downing.MemberStatus) bool { return m.Incarnation == id })
		}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			require.True(t, counted(), "n1 does not count it any more")
		}
		a.setSilent(false)
		b.Whole(3)
		require.True(t, counted())
		require.Len(t, b.Up(), 3)
		require.Empty(t, b.Store.History())
	})
}

// reboot restarts an agent under the same name, without the tags that were set at run time, and lets it
// answer a second later.
func (b *besides) reboot(name string, join ...string) {
	a := b.agents[name]
	a.halt()
	a.setSilent(true)
	a.boot(nil, join...)
	time.Sleep(time.Second)
	a.setSilent(false)
}

// An agent that restarts and is told to join nobody knows nobody. Its member sees no cluster of one, and
// brings it back to the others, with its tags, also where nobody probes anybody.
func TestBeside_AgentRestartsAlone(t *testing.T) {
	for name, config := range map[string]func(string, *downing.Config){
		"with probes": nil, "without": func(_ string, c *downing.Config) { c.Probe.Neighbours = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, 3, config, func(t *testing.T, b *besides) {
				b.reboot("n3")
				time.Sleep(time.Second)
				require.Len(t, b.provider("n3").Status().Members, 3)
				time.Sleep(5 * time.Second)
				node, err := b.agents["n3"].answering()
				require.NoError(t, err)
				require.Len(t, node.Members(), 3)
				require.NotEmpty(t, node.LocalMember().Tags[downing.TagUID])
				b.Whole(3)
				require.Len(t, b.Up(), 3)
				require.Empty(t, b.Store.History())
			})
		})
	}
}

// An agent restarts in the middle of a partition: still exactly one side survives, and nobody alone is a
// side.
func TestBeside_AgentRestartsDuringAPartition(t *testing.T) {
	long(t)
	ofOneSide := func(names []string) bool { return len(without(names, upper)) == 0 || len(without(names, lower)) == 0 }
	for name, tc := range map[string]struct {
		after time.Duration
		node  string
		join  []string
	}{
		"of the larger side, and joins it":   {5 * time.Second, "n3", []string{"n1"}},
		"of the larger side, and is alone":   {5 * time.Second, "n3", nil},
		"the leader's, late":                 {15 * time.Second, "n1", []string{"n2"}},
		"of the smaller side, and joins it":  {5 * time.Second, "n5", []string{"n4"}},
		"of the smaller side, and is alone":  {10 * time.Second, "n5", nil},
		"right with the cut, larger":         {0, "n2", []string{"n3"}},
		"right with the cut, smaller, alone": {0, "n4", nil},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, 5, nil, func(t *testing.T, b *besides) {
				require.NoError(t, b.Net.Partition(upper, lower))
				time.Sleep(tc.after)
				b.reboot(tc.node, tc.join...)
				b.Eventually(3*time.Minute, "more than one side is up", func() bool {
					return len(b.Up()) > 0 && ofOneSide(b.Up())
				})
				time.Sleep(5 * time.Minute)
				b.Net.Heal()
				time.Sleep(time.Minute)
				up := b.Up()
				require.NotEmpty(t, up)
				require.True(t, ofOneSide(up), up)
				t.Log("up:", up)
			})
		})
	}
}

// What comes while a start waits for the store is out of date when it goes on: a report of a broken link that
// is whole again suspends nobody.
func TestBeside_Start_HearsNothingWhileItWaits(t *testing.T) {
	m := newMeters(t)
	beside(t, 4, m.config, func(t *testing.T, b *besides) {
		b.agent("n5", nil, "n1")
		b.storeAway("n5")
		started := make(chan *clustertest.Member)
		go func() { started <- b.protect("n5") }()
		time.Sleep(10 * time.Second)
		require.NoError(t, b.Net.Cut("n2", "n3"))
		b.Eventually(15*time.Second, "nobody notices", func() bool { return b.state("n1") == sbr.StateSuspended })
		time.Sleep(time.Second) // the reports are everywhere
		b.Net.Heal()
		require.NoError(t, b.Net.Partition(clustertest.Names(4), []string{"n5"})) // it misses that the link is whole again
		time.Sleep(time.Minute)
		b.Net.Heal()
		require.NoError(t, b.Join(b.agents["n5"].node, "n1"))
		time.Sleep(time.Hour)
		b.storeBack("n5")
		<-started
		synctest.Wait()
		m.require("n5", "sbr.messages.received{message=report} = 0")
		b.Whole(5)
		require.Zero(t, b.suspensions("n5"))
		require.Zero(t, b.Store.Snapshot().Record.Token)
	})
}
