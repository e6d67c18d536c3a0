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
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Stock agents with Serf's LAN settings are cut; exactly one side survives, and after the heal still.
func TestBeside_Split_ExactlyOneSideSurvives(t *testing.T) {
	for _, tc := range []struct {
		name   string
		nodes  int
		groups [][]string
	}{
		{"3|2", 5, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}},
		{"1|4 with the leader alone", 5, [][]string{{"n1"}, {"n2", "n3", "n4", "n5"}}},
		{"2|2|1", 5, [][]string{{"n1", "n2"}, {"n3", "n4"}, {"n5"}}},
		{"1|1", 2, [][]string{{"n1"}, {"n2"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			beside(t, nil, func(t *testing.T, b *besides) {
				b.bootAll(tc.nodes)
				require.NoError(t, b.net.Partition(tc.groups...))
				b.requireOneSide(tc.groups, 2*time.Minute)
				time.Sleep(3 * time.Minute)
				b.net.Heal()
				time.Sleep(2 * time.Minute)
				b.requireOneSide(tc.groups, time.Second)
				up := b.up()
				b.eventually(time.Minute, func() bool { return len(b.members[up[0]].provider.Status().Members) == len(up) }, "the losers are not removed")
			})
		})
	}
}

// The agent falls silent while everything else is well: suspended at once, up again when it answers.
func TestBeside_SilentAgent_SuspendsAtOnceAndResumes(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		var calls []string
		b.members["n1"].provider.OnSuspend(func(why string) { calls = append(calls, "suspend: "+why) })
		b.members["n1"].provider.OnResume(func(why string) { calls = append(calls, "resume: "+why) })
		b.agents["n1"].setSilent(true)
		time.Sleep(10 * time.Millisecond)
		s := b.members["n1"].provider.Status()
		require.Equal(t, sbr.StateSuspended, s.State)
		require.Equal(t, "the Serf agent does not answer", s.SuspendedBecause)
		require.NotNil(t, s.SuspendedSince)
		require.Len(t, s.Members, 3, "what was known is still shown")
		time.Sleep(5 * time.Second)
		b.agents["n1"].setSilent(false)
		b.eventually(10*time.Second, func() bool { return b.state("n1") == sbr.StateUp }, "it does not resume")
		b.whole(3)
		require.Empty(t, b.store.History())
		require.True(t, b.askedForItsFate("n1"))
		synctest.Wait()
		require.Len(t, calls, 2)
		require.Equal(t, "suspend: the Serf agent does not answer", calls[0])
		require.Contains(t, calls[1], "resume: ")
	})
}

// An agent that stays silent takes its member down, in time, and the others go on without it.
func TestBeside_SilentAgent_GoesDown(t *testing.T) {
	for name, fail := range map[string]func(*stockAgent){
		"hangs": func(a *stockAgent) { a.setSilent(true) },
		"dies":  func(a *stockAgent) { a.halt() },
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, majorityFirst, func(t *testing.T, b *besides) {
				b.bootAll(3)
				began := time.Now()
				fail(b.agents["n1"])
				require.NoError(t, b.net.Partition([]string{"n1"}, []string{"n2", "n3"})) // nobody hears of it any more
				<-b.members["n1"].provider.Downed()
				took := time.Since(began)
				require.Greater(t, took, 14*time.Second)
				require.LessOrEqual(t, took, downing.DefaultConfig().AgentTimeout+2*downing.DefaultConfig().PollInterval+2*time.Second)
				require.Contains(t, b.members["n1"].provider.Reason(), "the Serf agent has not answered for 15s")
				<-b.members["n1"].provider.Done()
				b.eventually(2*time.Minute, func() bool { return len(b.members["n2"].provider.Status().Members) == 2 }, "it is not removed")
				require.Equal(t, []string{"n2", "n3"}, b.up())
			})
		})
	}
}

// A leader that sees nothing decides nothing, though it had a decision to make a moment ago.
func TestBeside_Blind_DecidesNothing(t *testing.T) {
	long := func(name string, c *downing.Config) {
		majorityFirst(name, c)
		c.AgentTimeout = 10 * time.Minute
	}
	beside(t, long, func(t *testing.T, b *besides) {
		b.bootAll(5)
		require.NoError(t, b.net.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
		b.eventually(time.Minute, func() bool { return b.members["n1"].provider.Status().Deadline != nil }, "it sees no partition")
		for _, name := range []string{"n1", "n2", "n3"} {
			b.agents[name].setSilent(true)
		}
		time.Sleep(9 * time.Minute)
		for _, name := range []string{"n1", "n2", "n3"} {
			require.False(t, b.down(name) && !strings.Contains(b.members[name].provider.Reason(), "verdict"), b.members[name].provider.Reason())
			for _, o := range b.occurred(name) {
				require.NotContains(t, []string{downing.OccurredAsking, string(sbr.TopicDecision)}, o.Kind)
			}
		}
	})
}

// What was decided elsewhere still downs a member that sees nothing: it watches the lease.
func TestBeside_Blind_ObeysAVerdict(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		b.agents["n3"].setSilent(true)
		time.Sleep(time.Second)
		b.store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: "other#u", Reason: "somebody else won"}})
		time.Sleep(100 * time.Millisecond)
		require.True(t, b.down("n3"))
		require.Contains(t, b.members["n3"].provider.Reason(), "somebody else won")
	})
}

// The agent answers again after the others have removed its member: it learns that before it resumes.
func TestBeside_AnswersAgainAfterTheVerdict(t *testing.T) {
	late := func(name string, c *downing.Config) {
		majorityFirst(name, c)
		c.AgentTimeout = time.Hour
		c.NoWatch = true
	}
	beside(t, late, func(t *testing.T, b *besides) {
		b.bootAll(3)
		var resumed atomic.Bool
		b.members["n1"].provider.OnResume(func(string) { resumed.Store(true) })
		b.agents["n1"].setSilent(true)
		require.NoError(t, b.net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		b.eventually(3*time.Minute, func() bool { return len(b.store.History()) == 1 }, "the others do not decide")
		time.Sleep(time.Minute)
		b.net.Heal()
		b.agents["n1"].setSilent(false)
		b.eventually(time.Minute, func() bool { return b.down("n1") }, "it does not learn its fate")
		require.Equal(t, []string{"n2", "n3"}, b.up())
		require.False(t, resumed.Load(), "it resumed before it knew")
	})
}

// askedForItsFate reports whether a member asked, as after a pause of its process.
func (b *besides) askedForItsFate(name string) bool {
	return slices.ContainsFunc(b.occurred(name), func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicPaused) })
}

// stopKeeping stops a provider as an upgrade does: its incarnation is to be gone on with.
func (b *besides) stopKeeping(name string) downing.Status {
	b.t.Helper()
	s := b.members[name].provider.Status()
	stop(b.t, b.members[name].provider)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.announced, name)
	return s
}

func keepTags(_ string, c *downing.Config) { c.KeepTags = true }

func TestBeside_Adoption_GoesOn(t *testing.T) {
	beside(t, keepTags, func(t *testing.T, b *besides) {
		b.bootAll(3)
		before := b.stopKeeping("n3")
		time.Sleep(time.Second)
		m := b.protect("n3", nil)
		require.Equal(t, before.Incarnation, m.provider.Status().Incarnation)
		b.whole(3)
		require.Nil(t, m.provider.Status().SuspendedSince)
		require.True(t, b.askedForItsFate("n3"))
		require.Empty(t, b.store.History())
	})
}

// An incarnation that was downed while its process was away is down as soon as it is gone on with, and nothing resumes before.
func TestBeside_Adoption_DownedMeanwhile(t *testing.T) {
	beside(t, keepTags, func(t *testing.T, b *besides) {
		b.bootAll(3)
		before := b.stopKeeping("n3")
		var survivors []sbr.ID
		for _, m := range before.Members {
			if m.Incarnation != before.Incarnation {
				survivors = append(survivors, sbr.ID(m.Incarnation))
			}
		}
		b.store.Restore(lease.Record{Token: 1, Verdict: &sbr.Verdict{Token: 1, DecidedBy: survivors[0], Survivors: survivors, Down: []sbr.ID{sbr.ID(before.Incarnation)}, Reason: "it was away"}})
		var resumed atomic.Bool
		m := b.protect("n3", nil)
		m.provider.OnResume(func(string) { resumed.Store(true) })
		time.Sleep(time.Second)
		require.True(t, b.down("n3"))
		require.Contains(t, m.provider.Reason(), "it was away")
		<-m.provider.Done()
		require.False(t, resumed.Load())
		require.Equal(t, []string{"n1", "n2"}, b.up())
	})
}

// The same without a lease: only the members know. It asks them before it resumes.
func TestBeside_Adoption_DownedMeanwhileWithoutALease(t *testing.T) {
	majority := func(name string, c *downing.Config) {
		c.KeepTags, c.Strategy, c.Store = true, "keep-majority", nil
	}
	beside(t, majority, func(t *testing.T, b *besides) {
		b.bootAll(3)
		b.stopKeeping("n3")
		decided := func() bool {
			return slices.ContainsFunc(b.occurred("n1"), func(o downing.Occurrence) bool { return o.Kind == string(sbr.TopicDecision) })
		}
		b.eventually(2*time.Minute, decided, "nothing is decided against it")
		time.Sleep(30 * time.Second)
		m := b.protect("n3", nil)
		var resumed atomic.Bool
		m.provider.OnResume(func(string) { resumed.Store(true) })
		b.eventually(time.Minute, func() bool { return b.down("n3") }, "it does not learn its fate")
		require.False(t, resumed.Load())
	})
}

func TestBeside_Adoption_NotOfWhatWasDownedHere(t *testing.T) {
	beside(t, keepTags, func(t *testing.T, b *besides) {
		b.bootAll(3)
		before := b.stopKeeping("n3")
		m := b.protect("n3", func(c *downing.Config) {
			c.WasDowned = func(incarnation string) bool { return incarnation == before.Incarnation }
		})
		after := m.provider.Status()
		require.NotEqual(t, before.Incarnation, after.Incarnation)
		require.NotEqual(t, sbr.StateSuspended, after.State)
		b.whole(3)
	})
}

// A provider that is stopped takes its tags back: the others count its node no more, at once and without unrest.
func TestBeside_Stop_TakesTheTagsBack(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		stop(t, b.members["n3"].provider)
		tags := b.agents["n3"].node.LocalMember().Tags
		require.Equal(t, "blue", tags["team"], "those of others stay")
		require.Empty(t, tags[downing.TagUID])
		for _, key := range []string{downing.TagBorn, downing.TagSeen, downing.TagConfig, downing.TagProbe} {
			require.NotContains(t, tags, key)
		}
		b.eventually(2*time.Second, func() bool {
			s := b.members["n1"].provider.Status()
			return slices.Equal(s.Untagged, []string{"n3"}) && len(s.Members) == 3 && s.State == sbr.StateUp
		}, "it still counts")
		time.Sleep(time.Minute)
		require.Equal(t, sbr.StateUp, b.state("n1"))
		require.Empty(t, b.store.History())
	})
}

// The agent restarts and forgets its tags for a moment: its member has not gone, so no side looks smaller or whole meanwhile.
func TestBeside_AgentRestart_IsNoDeparture(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		id := b.members["n3"].provider.Status().Incarnation
		a := b.agents["n3"]
		a.halt()
		a.setSilent(true) // the RPC client connects later
		a.boot(nil, "n1")
		counted := func() bool {
			return slices.ContainsFunc(b.members["n1"].provider.Status().Members, func(m downing.MemberStatus) bool { return m.Incarnation == id })
		}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			require.True(t, counted(), "n1 does not count it any more")
		}
		a.setSilent(false)
		b.whole(3)
		require.True(t, counted())
		require.Len(t, b.up(), 3)
		require.Empty(t, b.store.History())
	})
}

// reboot restarts an agent under the same name, without the tags that were set at run time, and lets it answer a second later.
func (b *besides) reboot(name string, join ...string) {
	a := b.agents[name]
	a.halt()
	a.setSilent(true)
	a.boot(nil, join...)
	time.Sleep(time.Second)
	a.setSilent(false)
}

// An agent that restarts and is told to join nobody knows nobody. Its member sees no cluster of one, and brings it back to the others.
func TestBeside_AgentRestartsAlone(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		b.reboot("n3")
		time.Sleep(time.Second)
		require.Len(t, b.members["n3"].provider.Status().Members, 3)
		b.whole(3)
		require.Len(t, b.up(), 3)
		require.Empty(t, b.store.History())
	})
}

// An agent restarts in the middle of a partition: still exactly one side survives, and nobody alone is a side.
func TestBeside_AgentRestartsDuringAPartition(t *testing.T) {
	groups := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
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
			beside(t, nil, func(t *testing.T, b *besides) {
				b.bootAll(5)
				require.NoError(t, b.net.Partition(groups...))
				time.Sleep(tc.after)
				b.reboot(tc.node, tc.join...)
				b.eventually(3*time.Minute, func() bool {
					return len(b.up()) > 0 && len(b.up()) < 4 && (subset(b.up(), groups[0]) || subset(b.up(), groups[1]))
				}, "more than one side is up")
				time.Sleep(5 * time.Minute)
				b.net.Heal()
				time.Sleep(time.Minute)
				up := b.up()
				require.NotEmpty(t, up)
				require.True(t, subset(up, groups[0]) || subset(up, groups[1]), up)
				t.Log("up:", up)
			})
		})
	}
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// An operator makes the agent leave: that is a leave and no failure.
func TestBeside_AgentLeaves(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		node := b.agents["n3"].node
		require.NoError(t, node.Leave())
		time.Sleep(time.Second)
		require.NoError(t, node.Shutdown())
		<-b.members["n3"].provider.Left()
		require.False(t, b.down("n3"))
		b.eventually(10*time.Second, func() bool { return len(b.members["n1"].provider.Status().Members) == 2 }, "it has not left")
		time.Sleep(time.Minute)
		require.False(t, b.down("n3"))
		require.Empty(t, b.store.History())
	})
}

// The restored tags are the resolver's own: whatever an operator has set meanwhile stays.
func TestBeside_TagsAreKept(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(2)
		id := b.members["n2"].provider.Status().Incarnation
		require.NoError(t, b.agents["n2"].node.SetTags(map[string]string{"team": "green"}))
		b.eventually(5*time.Second, func() bool {
			tags := b.agents["n2"].node.LocalMember().Tags
			return tags["team"] == "green" && strings.HasSuffix(id, "#"+tags[downing.TagUID]) && tags[downing.TagProbe] != ""
		}, "its tags are not put back")
		b.whole(2)
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
	beside(t, nil, func(t *testing.T, b *besides) {
		a := &broken{stockAgent: &stockAgent{c: b.cluster, name: "n1"}}
		b.agents["n1"] = a.stockAgent
		a.boot(nil)
		cfg := downing.DefaultConfig()
		cfg.System, cfg.Store, cfg.Exit = "payments", b.store.View("n1"), func(int) {}
		p, err := downing.New(cfg)
		require.NoError(t, err)
		b.members["n1"] = &member{provider: p, serf: a.node}
		prober := &probes{b: b, agent: a.stockAgent}

		a.open = errors.New("refused")
		require.ErrorIs(t, p.Beside(t.Context(), a, prober), a.open)
		a.open, a.tag = nil, errors.New("no tags")
		short, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		require.ErrorIs(t, p.Beside(short, a, prober), a.tag)
		cancel()
		require.Equal(t, 1, a.closed)
		a.tag = nil
		b.store.View("n1").SetUnavailable(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		require.ErrorIs(t, p.Beside(ctx, a, prober), context.DeadlineExceeded)
		cancel()
		require.Equal(t, 2, a.closed)
		require.Empty(t, a.node.LocalMember().Tags[downing.TagUID], "it is no member before it has read the lease")
		b.store.View("n1").SetUnavailable(false)
		require.NoError(t, p.Beside(t.Context(), a, prober))
		require.ErrorIs(t, p.Beside(t.Context(), a, prober), downing.ErrStarted)
		b.whole(1)
	})
}
