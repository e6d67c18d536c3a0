package downing_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
)

func onlyFor(name string, change func(*serf.Config)) func(string, *serf.Config) {
	return func(n string, conf *serf.Config) {
		if n == name {
			change(conf)
		}
	}
}

// A stock Serf freezes when its event channel is not read: an event is sent under its locks. Behind the tap
// it does not, and the member is protected as ever.
func TestApplication_NeverReadsItsEvents(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.EventCh = make(chan serf.Event) }
		c.Form(3)
		requireAlive(t, c.Member("n1").Serf)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.requireOneSide([][]string{{"n1", "n2"}}, 2*time.Minute)
		requireAlive(t, c.Member("n1").Serf)
	})
}

// An application that reads gets every event, in order, however far behind it is.
func TestApplication_GetsEveryEvent(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		events := make(chan serf.Event)
		c.Options.Serf = onlyFor("n1", func(conf *serf.Config) { conf.EventCh = events })
		c.Form(2)
		const n = 3000
		for i := range n {
			require.NoError(t, c.Member("n1").Serf.UserEvent(fmt.Sprint(i), nil, false))
		}
		joined, next := map[string]bool{}, 0
		for next < n {
			switch e := (<-events).(type) {
			case serf.MemberEvent:
				for _, m := range e.Members {
					joined[m.Name] = joined[m.Name] || e.Type == serf.EventMemberJoin
				}
			case serf.UserEvent:
				require.Equal(t, fmt.Sprint(next), e.Name)
				next++
			}
		}
		require.Equal(t, map[string]bool{"n1": true, "n2": true}, joined)
	})
}

// The application's queries pass through the tap and can be answered; the resolver's own do not reach it.
func TestApplication_QueriesPassThrough(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		events := make(chan serf.Event, 4096)
		c.Options.Serf = onlyFor("n2", func(conf *serf.Config) { conf.EventCh = events })
		c.Form(3)
		var mu sync.Mutex
		var asked []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e := range events {
				if q, ok := e.(*serf.Query); ok {
					mu.Lock()
					asked = append(asked, q.Name)
					mu.Unlock()
					_ = q.Respond([]byte("pong"))
				}
			}
		}()
		resp, err := c.Member("n1").Serf.Query("ping", nil, &serf.QueryParam{Timeout: 5 * time.Second})
		require.NoError(t, err)
		answer := <-resp.ResponseCh()
		require.Equal(t, "n2", answer.From)
		require.Equal(t, "pong", string(answer.Payload))
		// Reports and a verdict travel as queries as well.
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.requireOneSide([][]string{{"n1", "n2"}}, 2*time.Minute)
		time.Sleep(time.Minute)
		mu.Lock()
		require.Equal(t, []string{"ping"}, asked)
		mu.Unlock()
		require.NoError(t, c.Member("n2").Serf.Shutdown())
		time.Sleep(time.Minute) // the tap ends with Serf; nobody sends any more
		require.NoError(t, c.Member("n2").Stop())
		close(events)
		<-done
	})
}

// gatekeeper is the application's own merge delegate.
type gatekeeper struct {
	mu    sync.Mutex
	asked map[string]int
	deny  string
}

func (g *gatekeeper) NotifyMerge(members []*serf.Member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range members {
		g.asked[m.Name]++
		if m.Name == g.deny {
			return errors.New("not in my cluster")
		}
	}
	return nil
}

// The application's merge delegate still decides who may join.
func TestApplication_MergeDelegateIsChained(t *testing.T) {
	g := &gatekeeper{asked: map[string]int{}, deny: "stranger"}
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.Merge = g }
		names := c.Form(3)
		g.mu.Lock()
		require.Contains(t, g.asked, "n1")
		require.Contains(t, g.asked, "n3")
		g.mu.Unlock()

		_ = startAt(c, "stranger", nil) // it hears of a refusal only in what others do not do
		time.Sleep(time.Minute)
		for _, n := range names {
			require.Len(t, c.Member(n).Serf.Members(), 3, n)
		}
	})
}
