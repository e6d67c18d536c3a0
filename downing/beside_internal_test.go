package downing

import (
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
)

// at is a member at another address.
func at(m serf.Member, port uint16) serf.Member {
	m.Port = port
	return m
}

// resigned is a member whose provider has been stopped.
func resigned(name string) serf.Member {
	m := listed(name, "", serf.StatusAlive)
	m.Tags = map[string]string{TagUID: ""}
	return m
}

// A stock agent that restarts has forgotten the tags until its resolver sets them again. That is no
// departure: a side must not look smaller by it, and still less whole.
func TestMembership_TagsLostForAMoment(t *testing.T) {
	bare := func(s serf.MemberStatus) []serf.Member { return []serf.Member{listed("n2", "", s)} }
	known := look{list: one(serf.StatusAlive), want: []string{"n2#u up"}}
	for rule, steps := range map[string][]look{
		"it is the member it was": {
			known, {list: bare(serf.StatusAlive)}, {at: bareFor - time.Second, list: bare(serf.StatusAlive)}, {at: bareFor, list: one(serf.StatusAlive)},
		},
		"it fails as the member it was, and stays failed for as long as Serf says so": {
			known, {list: bare(serf.StatusAlive)}, {list: bare(serf.StatusFailed), want: []string{"n2#u failed"}},
			{at: 10 * bareFor, list: bare(serf.StatusFailed)},
			{at: 10*bareFor + 1, list: one(serf.StatusAlive), want: []string{"n2#u not failed"}},
		},
		"one that fails without tags is the member it was": {
			known, {list: bare(serf.StatusFailed), want: []string{"n2#u failed"}}, {list: nil, want: []string{"n2#u unlisted"}},
		},
		"alive without tags for too long it runs no resolver any more": {
			known, {at: 1, list: bare(serf.StatusAlive)}, {at: 1 + bareFor, list: bare(serf.StatusAlive), want: []string{"?n2 joining", "n2#u unlisted"}},
			{at: 10 * bareFor, list: bare(serf.StatusAlive)},
		},
		"the time counts anew after tags were there": {
			known, {at: 1, list: bare(serf.StatusAlive)}, {at: 2, list: one(serf.StatusAlive)}, {at: bareFor, list: bare(serf.StatusAlive)},
			{at: 1 + bareFor, list: bare(serf.StatusAlive)},
		},
		"another incarnation is another member": {
			known, {list: bare(serf.StatusAlive)},
			{list: []serf.Member{listed("n2", "v", serf.StatusAlive)}, want: []string{"n2#u ended", "n2#v up"}},
		},
		"at another address it is another node": {
			known, {list: []serf.Member{at(listed("n2", "", serf.StatusAlive), 1)}, want: []string{"?n2 joining", "n2#u unlisted"}},
		},
		"one that resigned is gone at once": {
			known, {list: []serf.Member{resigned("n2")}, want: []string{"?n2 joining", "n2#u ended"}},
		},
		"one that leaves without tags leaves": {
			known, {list: bare(serf.StatusLeaving), do: bye("n2#u"), want: []string{"n2#u leaving"}},
			{list: bare(serf.StatusLeft), want: []string{"n2#u ended"}},
		},
		"one that never had tags is no member": {
			{list: bare(serf.StatusAlive), want: []string{"?n2 joining"}}, {list: bare(serf.StatusAlive)},
		},
	} {
		t.Run(rule, func(t *testing.T) { looks(t, steps) })
	}
}

// A member is sure of nothing that is younger than what the agent has told it, or than its own step.
func TestEarlier(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct{ asked, want time.Time }{
		"a second ago":                   {now.Add(-time.Second), now.Add(-time.Second)},
		"after this step began":          {now.Add(time.Second), now},
		"never, so nothing is sure":      {time.Time{}, time.Time{}},
		"exactly when this step started": {now, now},
	} {
		require.Equal(t, tc.want, earlier(tc.asked, now), name)
	}
}
