package programs_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	turns "github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// suspends is a resolver that waits, and downs nobody here, while its store is away.
var suspends = clustertest.Options{Config: func(name string, c *downing.Config) {
	clustertest.Quick(name, c)
	c.Resolver.WhenLeaseUnknown = 1
}}

// The connection breaks: the program is stopped, and started again once that was told.
func TestConnectionLost_StopsAndComesBack(t *testing.T) {
	eachWay(t, 1, clustertest.Options{}, func(t *testing.T, c *crew) {
		p := c.starts("n1")
		cut := time.Now()
		c.agents["n1"].listener.cut()
		c.Eventually(30*time.Second, "it is not started again",
			func() bool { return p.count() == 2 && p.running() })
		p.mu.Lock()
		first := p.runs[0]
		p.mu.Unlock()
		require.Contains(t, first.because, "the connection to the agent has ended")
		require.LessOrEqual(t, first.told.Sub(cut), 10*time.Millisecond)
		require.Less(t, time.Since(cut), 5*time.Second, "who has come back is not waited for")
		c.alone()
	})
}

// The program's side comes back with what its program has left: a successor that waits gets it.
func TestConnectionLost_WhatWasLeftIsHandedOver(t *testing.T) {
	with(t, 2, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		x, _ := c.agents["n1"].begins(hello("backup", "comes-back", 4711))
		second := c.attach("n2", nil)
		time.Sleep(time.Second)
		x.close()
		time.Sleep(2 * time.Second)
		require.Zero(t, second.count())
		x = c.agents["n1"].post(nil, strings.Replace(hello("backup", "comes-back", 4711), `"pid"`,
			`"ended":{"run":1,"state":"bGFzdA=="},"pid"`, 1))
		defer x.close()
		c.Eventually(5*time.Second, "n2 does not run it", func() bool { return second.count() == 1 })
		require.Equal(t, "last", second.last().state)
	})
}

// The program's side is gone and does not come back: nothing starts elsewhere before its program must have
// ended.
func TestConnectionLost_OthersWaitForTheProgram(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		x, started := c.agents["n1"].begins(hello("backup", "dies", 4711))
		second := c.attach("n2", nil)
		time.Sleep(5 * time.Second)
		gone := time.Now()
		x.close()
		c.runs(second, time.Minute)
		waited := second.last().start.Sub(gone)
		t.Logf("it was promised %v; the next one starts %v after the end of the connection",
			time.Duration(started.ValidFor), waited)
		require.GreaterOrEqual(t, waited, min(stopTimeout+5*time.Second,
			time.Duration(started.ValidFor)-5*time.Second))
		require.LessOrEqual(t, waited, stopTimeout+7*time.Second)
		require.Greater(t, second.last().token, started.Token)
	})
}

// The program's side stands still, so that its supervisor alone looks after the program: until the time is
// over that was promised.
func TestProgramSilent_OthersWaitForWhatWasPromised(t *testing.T) {
	for name, stands := range map[string]func(x *raw){
		"it says nothing":  func(x *raw) { _, _ = io.Copy(io.Discard, x.resp.Body) },
		"it reads nothing": func(x *raw) { x.say(strings.Repeat("{\"ping\":2}\n", 5000)) },
	} {
		t.Run(name, func(t *testing.T) {
			stores := leasetest.NewMemory()
			with(t, 2, clustertest.Options{}, func(name string, c *singleton.Config) {
				c.Store = stores.View(name)
				c.Lease.HeartbeatTimeout, c.Lease.HeartbeatInterval, c.Lease.OperationTimeout = 40*time.Second,
					2*time.Second, time.Second
			}, func(t *testing.T, c *crew) {
				x, _ := c.agents["n1"].begins(hello("backup", "stands-still", 4711))
				defer x.close()
				time.Sleep(3 * time.Second)
				x.say(`{"ping":1}`)
				p := x.hears(func(m attach.FromAgent) bool { return m.Pong != nil }).Pong
				require.EqualValues(t, 1, p.Run)
				until := time.Now().Add(time.Duration(p.ValidFor))
				second := c.attach("n2", nil)
				go stands(x)
				c.runs(second, 2*time.Minute)
				require.Greater(t, second.last().start, until)
				require.Less(t, second.last().start, until.Add(10*time.Second))
			})
		})
	}
}

// A program that does not end holds the singleton for as long as it is attached: nobody can know that it is
// over.
func TestNeverEnds_NothingStartsElsewhere(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		x, _ := c.agents["n1"].begins(hello("backup", "stubborn", 4711))
		defer x.close()
		stopped := make(chan *attach.Stop, 1)
		go func() {
			for {
				m, err := x.in.Read()
				if err != nil {
					return
				}
				if m.Stop != nil {
					stopped <- m.Stop
				}
			}
		}()
		pings, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for pings.Err() == nil {
				x.say(`{"ping":1}`)
				time.Sleep(time.Second)
			}
		}()
		second := c.attach("n2", nil)
		time.Sleep(5 * time.Second)
		x.say(`{"detach":true}`)
		require.Equal(t, "hand-over", (<-stopped).Cause)
		time.Sleep(5 * time.Minute)
		require.Zero(t, second.count())
		x.say(`{"ended":{"run":1,"state":"bGFzdA=="}}`)
		c.runs(second, 5*time.Second)
		// with one, n2 has stopped asking, and waits for the lease
		if strings.HasSuffix(t.Name(), "without a lease") {
			require.Equal(t, "last", second.last().state)
		}
	})
}

// The agent is paused, and sends nothing: the program runs for as long as it was allowed to, and no longer.
func TestAgentSilent_TheProgramEndsInTime(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		p := c.starts("n1")
		time.Sleep(10 * time.Second)
		silent := time.Now()
		c.agents["n1"].listener.gate.Close()
		c.Eventually(time.Minute, "it goes on", func() bool { return !p.running() })
		lasted := p.last().end.Sub(silent)
		t.Logf("told after %v, ended after %v", p.last().told.Sub(silent), lasted)
		require.Contains(t, p.last().because, "nearly over")
		require.Less(t, lasted, 12*time.Second, "as long as trust and lease last here")
		c.agents["n1"].listener.gate.Open()
		c.Eventually(time.Minute, "it is not started again", p.running)
		c.alone()
	})
}

// A pause of the agent that is shorter than what it has promised changes nothing.
func TestAgentSilent_AShortPauseIsNothing(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		p := c.starts("n1")
		c.agents["n1"].listener.gate.Close()
		time.Sleep(2 * time.Second)
		c.agents["n1"].listener.gate.Open()
		time.Sleep(time.Minute)
		require.True(t, p.running())
		require.Equal(t, 1, p.count())
	})
}

// The agent dies and comes back at once: the others take its member's run for over, and wait for the removal
// margin alone. What the dead agent has promised is over by then.
func TestAgentDies_TheProgramEndsWithinTheMargin(t *testing.T) {
	for name, margin := range map[string]time.Duration{
		"that of the resolver": 0, "a short one": 5 * time.Second, "a long one": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			with(t, 3, clustertest.Options{Config: func(name string, c *downing.Config) {
				clustertest.Quick(name, c)
				c.Resolver.StableAfter = 20 * time.Second
			}}, func(_ string, c *singleton.Config) { c.RemovalMargin = margin }, func(t *testing.T, c *crew) {
				// it has to be killed
				first := c.attach("n1", func(p *program, _ *attach.AgentOptions) { p.takes = time.Hour })
				c.runs(first, time.Minute)
				second := c.waits("n2")
				dead, gate := c.Member("n1"), &c.agents["n1"].listener.gate
				gate.Close() // its program does not notice
				defer func() { gate.Open(); require.NoError(t, dead.Stop()) }()
				died := time.Now()
				require.NoError(t, dead.Serf.Shutdown())
				c.Start("n1")
				c.runs(second, 2*time.Minute)
				c.alone()
				t.Logf("ended after %v, starts elsewhere after %v", first.last().end.Sub(died),
					second.last().start.Sub(died))
			})
		})
	}
}

// A member that is not sure of its place extends nothing: its program has ended before another one may start.
func TestUnsure_TheProgramEndsBeforeOthersStart(t *testing.T) {
	with(t, 3, suspends, nil, func(t *testing.T, c *crew) {
		// it has to be killed
		first := c.attach("n1", func(p *program, _ *attach.AgentOptions) { p.takes = time.Hour })
		c.runs(first, 30*time.Second)
		second := c.attach("n2", nil)
		time.Sleep(5 * time.Second)
		c.Member("n1").Store.SetUnavailable(true)
		cut := time.Now()
		require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		c.runs(second, time.Minute)
		t.Logf("ended after %v (%s), starts elsewhere after %v", first.last().end.Sub(cut), first.last().because,
			second.last().start.Sub(cut))
		c.alone()
	})
}

// Downed: the program is told at once, and the agent's end waits for it.
func TestDowned_StopsFirst(t *testing.T) {
	eachWay(t, 3, clustertest.Options{}, func(t *testing.T, c *crew) {
		first := c.attach("n1", func(p *program, _ *attach.AgentOptions) { p.takes = time.Second })
		c.runs(first, 30*time.Second)
		second := c.attach("n2", nil)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		<-c.Member("n1").Provider.Downed()
		downed := time.Now()
		<-c.Member("n1").Provider.Done()
		require.False(t, first.running(), "the agent must not end before its program")
		if !strings.Contains(first.last().because, "nearly over") { // the resolver was faster
			require.Contains(t, first.last().because, "(down)")
			require.LessOrEqual(t, first.last().told.Sub(downed), 10*time.Millisecond)
		}
		c.runs(second, 2*time.Minute)
		c.alone()
	})
}

// The lease was taken away: another one may run already, so nothing is left to be done in peace.
func TestLeaseTaken_KillsAtOnce(t *testing.T) {
	stores := leasetest.NewMemory()
	with(t, 1, clustertest.Options{}, func(name string, c *singleton.Config) { c.Store = stores.View(name) },
		func(t *testing.T, c *crew) {
			p := c.attach("n1", func(p *program, _ *attach.AgentOptions) { p.takes = time.Hour })
			c.runs(p, 30*time.Second)
			take(t, stores)
			c.Eventually(2*time.Second, "it goes on", func() bool { return !p.running() })
			require.True(t, p.last().told.IsZero(), "it was killed: %s", p.last().because)
		})
}

func TestRefused(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		a := c.agents["n1"]
		x := a.post(nil, hello("backup", "first", 4711))
		defer x.close()
		require.Equal(t, http.StatusOK, x.resp.StatusCode)
		for _, refused := range []struct {
			name   string
			peer   string
			change func(r *http.Request)
			line   string
			status int
			text   string
		}{
			{"a second program", "", nil, hello("backup", "second", 4712), 409, "singleton backup: pid 4711 has attached a program for it"},
			{"from elsewhere", "192.0.2.7:4000", nil, hello("other", "x", 1), 403, "from this machine only, not from 192.0.2.7:4000"},
			{"a web page", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, hello("other", "x", 1), 403, "not by a web page"},
			{"another kind of content", "", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, hello("other", "x", 1), 415, attach.ContentType},
			{"no attach", "", nil, `{"ping":1}`, 400, "the first line must attach a program"},
			{"garbage", "", nil, `attach!`, 400, "must be of the same version"},
			{"an unknown key", "", nil, `{"attach":{"singleton":"a","client":"x","pid":1,"stop-timeout":"1s","nice":1}}`, 400, `unknown field "nice"`},
			{"a name that cannot be one", "", nil, hello("no spaces", "x", 1), 400, `the name "no spaces" is not`},
			{"a line too long", "", nil, `{"attach":{"singleton":"` + strings.Repeat("a", attach.MaxLine) + `"}}`, 400, "a line of more than 8192 bytes"},
		} {
			a.listener.peer = "127.0.0.1:41000"
			if refused.peer != "" {
				a.listener.peer = refused.peer
			}
			r := a.post(refused.change, refused.line)
			status, text := r.refused()
			require.Equal(t, refused.status, status, refused.name)
			require.Contains(t, text, refused.text, refused.name)
		}
	})
}

// An invalid message ends the connection, with the reason; the connection counts as lost.
func TestNonsense_EndsTheConnection(t *testing.T) {
	for _, line := range []string{"nonsense", `{"ping":1,"detach":true}`, `{"ended":{"run":0}}`,
		strings.Repeat("x", attach.MaxLine+1), hello("backup", "x", 1)} {
		with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
			x, _ := c.agents["n1"].begins(hello("backup", "x", 1))
			defer x.close()
			go x.say(line)
			bye := x.hears(func(m attach.FromAgent) bool { return m.Bye != nil }).Bye
			require.NotEmpty(t, bye.Why)
			_, err := x.in.Read()
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// A program that reads nothing holds nobody up, and is let go.
func TestDeaf_IsLetGo(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		x := c.agents["n1"].post(nil, hello("backup", "deaf", 1))
		defer x.close()
		go func() {
			for range 5000 { // the server's buffers are larger than one answer
				x.say(`{"ping":1}`)
			}
		}()
		c.Eventually(time.Minute, "it is still attached", func() bool {
			list := c.agents["n1"].host.Singletons()
			return len(list) == 0 || !list[0].Attached
		})
	})
}

func TestList_SaysWhatRunsWhere(t *testing.T) {
	with(t, 2, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		require.Equal(t, "[]", c.agents["n1"].list(t))
		p := c.starts("n1")
		c.attach("n2", nil)
		c.Eventually(30*time.Second, "n2 does not know",
			func() bool { return strings.Contains(c.agents["n2"].list(t), `"holder": "n1"`) })
		here, there := c.agents["n1"].host.Singletons()[0], c.agents["n2"].host.Singletons()[0]
		require.Equal(t, p.last().token, here.Token)
		require.Equal(t, "active", here.Phase)
		require.Equal(t, "backup", here.Name)
		require.True(t, here.Attached)
		require.Positive(t, here.PID)
		require.Equal(t, downing.SingletonStatus{
			Name: "backup", Phase: "idle", Holder: "n1", HolderToken: here.Token, WaitingFor: []string{},
			Attached: true, PID: here.PID, Last: there.Last,
		}, there)
	})
}

// With Once a program leaves when it has seen that the singleton runs elsewhere.
func TestOnce_LeavesWhenItRunsElsewhere(t *testing.T) {
	with(t, 2, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		c.runs(c.attach("n1", nil), 30*time.Second)
		second := c.attach("n2", func(_ *program, o *attach.AgentOptions) { o.Once = true })
		<-second.done
		require.ErrorIs(t, second.err, turns.ErrElsewhere)
		require.ErrorContains(t, second.err, "on n1, under token ")
	})
}

// Two processes of one machine wait for each other, also where their agent was started again and knows
// nothing of the first.
func TestLock_OneProcessAtATime(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		lock := t.TempDir() + "/lock"
		first := c.attach("n1", func(_ *program, o *attach.AgentOptions) { o.Lock = lock })
		c.runs(first, 30*time.Second)
		second := c.attach("n1", func(_ *program, o *attach.AgentOptions) { o.Lock = lock })
		once := c.attach("n1", func(_ *program, o *attach.AgentOptions) { o.Lock, o.Once = lock, true })
		<-once.done
		require.ErrorIs(t, once.err, turns.ErrElsewhere)
		time.Sleep(time.Minute)
		require.Zero(t, second.count())
		first.end()
		c.runs(second, 30*time.Second)
		require.Greater(t, second.last().token, first.last().token, "the agent remembers")
		c.alone()
	})
}

// What will never work is said, and what may work later is waited for.
func TestRefusedForGood(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		p := c.attach("n1", func(_ *program, o *attach.AgentOptions) { o.Singleton = "no spaces" })
		<-p.done
		require.ErrorContains(t, p.err, `the agent refuses the program (400): singleton no spaces cannot be run`)

		c.agents["n1"].listener.peer = "192.0.2.7:4000"
		p = c.attach("n1", nil)
		<-p.done
		require.ErrorContains(t, p.err, "(403)")
	})
}
