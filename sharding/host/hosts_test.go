package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// As long as this member may not run the shard itself it lets the present host run it.
func TestTaking_AsksTheFormerHostOnlyOnceItMayRun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*host.Config)
		unable func(*bench)
		able   func(*bench)
	}{
		{"not armed", nil, func(b *bench) { b.view.Armed = false }, func(b *bench) { b.view.Armed = true }},
		{"not armed, with leases", withLease, func(b *bench) { b.view.Armed = false }, func(b *bench) { b.view.Armed = true }},
		{"not sure of its place", nil, func(b *bench) { b.view.Sure = -1 }, func(b *bench) { b.view.Sure = b.now }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := following(t, tc.change)
			tc.unable(b)
			b.step(host.Viewed{View: b.view})
			require.Empty(t, asked(b.order("n1", 5, 2, 0, "n2", "me")))
			at, ok := b.m.NextDeadline()
			require.False(t, ok, "there is nothing to do at %v", at)
			require.Empty(t, asked(b.pass(time.Second, false)))
			tc.able(b)
			require.Equal(t, []sbr.ID{"n2"}, asked(b.step(host.Viewed{View: b.view})))
		})
	}
}

// asked are those that were asked to hand over.
func asked(effects []host.Effect) (of []sbr.ID) {
	for _, e := range only[host.Ask](effects) {
		if e.Message.Kind == message.HandOver {
			of = append(of, e.To)
		}
	}
	return of
}

// A node that has left is gone for the others, who then wait for the margin alone: without leases its runs are over before.
func TestLeave_OfTheNodeIsOverBeforeTheMargin(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*host.Config)
		ends   bool
	}{{"without leases", nil, true}, {"a lease holds the others back", withLease, false}} {
		t.Run(tc.name, func(t *testing.T) {
			b := following(t, tc.change)
			b.order("n1", 5, 2, 0, "", "me")
			if !tc.ends {
				b.step(host.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 7})
			}
			b.view.Peers[0].Leaving = true
			require.Empty(t, only[host.Stop](b.pass(time.Millisecond, true)), "until somebody asks")
			stops := only[host.Stop](b.pass(host.DefaultConfig().Margin/2, false))
			if !tc.ends {
				require.Empty(t, stops)
				return
			}
			require.Len(t, stops, 1)
			require.Equal(t, host.CauseResigned, stops[0].Cause)
		})
	}
}
