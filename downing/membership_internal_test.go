package downing

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// listed is a member as Serf lists it.
func listed(name, uid string, status serf.MemberStatus) serf.Member {
	m := serf.Member{Name: name, Addr: net.IPv4(10, 0, 0, 1), Port: 7946, Status: status}
	if uid != "" {
		m.Tags = map[string]string{TagUID: uid, TagBorn: "z", TagSeen: "3", TagConfig: "cfg",
			TagVersion: wireVersion}
	}
	return m
}

// says turns changes into words: "n2#u up", "n2#u failed", "n2#u not failed", "n2#u ended", "n2#u unlisted".
func says(changes []change) (out []string) {
	for _, c := range changes {
		switch ev := c.event.(type) {
		case sbr.MemberSeen:
			out = append(out, string(c.id)+" "+ev.Member.Status.String())
		case sbr.MemberGone:
			if ev.Ended {
				out = append(out, string(c.id)+" ended")
			} else {
				out = append(out, string(c.id)+" unlisted")
			}
		default:
			if *c.failed {
				out = append(out, string(c.id)+" failed")
			} else {
				out = append(out, string(c.id)+" not failed")
			}
		}
	}
	slices.Sort(out)
	return out
}

// looks feeds one look after another and compares what each reports.
func looks(t *testing.T, steps []look) *membership {
	t.Helper()
	ms := newMembership("n1#self", reachable)
	for i, s := range steps {
		if s.do != nil {
			s.do(ms)
		}
		require.Equal(t, s.want, says(ms.look(s.at, s.list)), "look %d", i)
	}
	return ms
}

type look struct {
	at   time.Duration
	list []serf.Member
	want []string
	do   func(*membership)
}

func one(status serf.MemberStatus) []serf.Member { return []serf.Member{listed("n2", "u", status)} }

func reachable(sbr.ID) bool { return false }

// The list is the truth: only what differs from the last look is reported.
func TestMembership_OnlyDifferencesAreReported(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{list: one(serf.StatusAlive)},
		{list: one(serf.StatusFailed), want: []string{"n2#u failed"}},
		{list: one(serf.StatusFailed)},
		{list: one(serf.StatusAlive), want: []string{"n2#u not failed"}},
		{list: nil, want: []string{"n2#u unlisted"}}, // erased
		{list: nil},
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}}, // known from others only
		{list: one(serf.StatusNone), want: []string{"n2#u unlisted"}},            // reaped
	})
}

func bye(id sbr.ID) func(*membership) { return func(ms *membership) { ms.saidGoodbye(id) } }

// A member that says goodbye itself has ended when Serf calls it left, in whichever order the two are seen.
func TestMembership_Goodbye(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeaving)}, // anybody can say so
		{at: 2 * time.Second, list: one(serf.StatusLeaving), do: bye("n2#u"), want: []string{"n2#u leaving"}},
		{at: 3 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u ended"}},
		{at: 4 * time.Second, list: one(serf.StatusLeft)},
	})
	looks(t, []look{ // the goodbye comes last
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u leaving"}},
		{at: 2 * time.Second, list: one(serf.StatusLeft), do: bye("n2#u"), want: []string{"n2#u ended"}},
	})
	looks(t, []look{ // the dead message overtakes the intent
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusFailed), want: []string{"n2#u failed"}},
		{at: 2 * time.Second, list: one(serf.StatusLeft), do: bye("n2#u"), want: []string{"n2#u ended"}},
	})
	looks(t, []look{ // Serf's own word that it leaves gets lost: to Serf it has failed
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusAlive), do: bye("n2#u"), want: []string{"n2#u leaving"}},
		{at: 6 * time.Second, list: one(serf.StatusFailed), want: []string{"n2#u ended"}},
		{at: 7 * time.Second, list: one(serf.StatusFailed)},
	})
	// it no longer answers our probes, and Serf has not noticed
	ms := newMembership("n1#self", func(sbr.ID) bool { return true })
	require.Equal(t, []string{"n2#u up"}, says(ms.look(0, one(serf.StatusAlive))))
	ms.saidGoodbye("n2#u")
	require.Equal(t, []string{"n2#u ended"}, says(ms.look(time.Second, one(serf.StatusAlive))))
	ms = looks(t, []look{ // it comes after Serf has forgotten the member
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: nil, want: []string{"n2#u unlisted"}},
	})
	require.True(t, ms.saidGoodbye("n2#u"))
	require.False(t, ms.saidGoodbye("n2#u"))
}

// Serf's word that a member leaves, or has left, is no goodbye: a force-leave makes it of a member that
// lives.
func TestMembership_ForceLeaveIsNoGoodbye(t *testing.T) {
	looks(t, []look{ // of a member that had failed: at once
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusFailed), want: []string{"n2#u failed"}},
		{at: 2 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u unlisted"}},
		{at: 3 * time.Second, list: one(serf.StatusLeft)},
		{at: 4 * time.Second, list: one(serf.StatusAlive), want: []string{"n2#u up"}}, // it lives
	})
	looks(t, []look{ // of a member that lives, and crashes later: once its goodbye has had its time
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeaving)},
		{at: 10 * time.Minute, list: one(serf.StatusLeft), want: []string{"n2#u leaving"}},
		{at: 10*time.Minute + goodbyeWithin - 1, list: one(serf.StatusLeft)},
		{at: 10*time.Minute + goodbyeWithin, list: one(serf.StatusLeft), want: []string{"n2#u unlisted"}},
	})
	looks(t, []look{ // refuted: the next one has its full time again
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u leaving"}},
		{at: 2 * time.Second, list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 6 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u leaving"}},
		{at: 9 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u unlisted"}},
	})
}

// Members of version 1 say no goodbye: Serf's status of a member that had not failed has to do.
func TestMembership_VersionOneLeaves(t *testing.T) {
	old := func(s serf.MemberStatus) []serf.Member {
		list := one(s)
		delete(list[0].Tags, TagVersion)
		return list
	}
	looks(t, []look{
		{list: old(serf.StatusAlive), want: []string{"n2#u up"}},
		{list: old(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{list: old(serf.StatusLeft), want: []string{"n2#u ended"}},
	})
	looks(t, []look{
		{list: old(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: old(serf.StatusLeft), want: []string{"n2#u unlisted"}},
	})
}

// A restart under the same name and address is another member, also when Serf never called the old one
// failed. Once it did, only a successor that names it proves that the old one has ended: another node may
// have the name.
func TestMembership_RestartUnderTheSameName(t *testing.T) {
	successor := listed("n2", "v", serf.StatusAlive)
	successor.Tags[TagWas] = "t,u"
	moved := listed("n2", "v", serf.StatusAlive)
	moved.Port = 7947
	resigned := listed("n2", "", serf.StatusAlive)
	resigned.Tags = map[string]string{TagUID: ""}
	for name, c := range map[string]struct {
		before serf.MemberStatus
		now    serf.Member
		want   string
	}{
		"in its place":                      {serf.StatusAlive, listed("n2", "v", serf.StatusAlive), "n2#u ended"},
		"at another address":                {serf.StatusAlive, moved, "n2#u unlisted"},
		"after it failed":                   {serf.StatusFailed, listed("n2", "v", serf.StatusAlive), "n2#u unlisted"},
		"after it failed, by its successor": {serf.StatusFailed, successor, "n2#u ended"},
		"a successor that failed as well":   {serf.StatusFailed, listed("n2", "v", serf.StatusFailed), "n2#u unlisted"},
		"its resolver was stopped in peace": {serf.StatusAlive, resigned, "n2#u ended"},
	} {
		t.Run(name, func(t *testing.T) {
			ms := newMembership("n1#self", reachable)
			ms.look(0, one(c.before))
			require.Contains(t, says(ms.look(0, []serf.Member{c.now})), c.want)
		})
	}
}

// What this member cannot reach itself is as good as failed, although Serf has not said so yet.
func TestMembership_CutOff(t *testing.T) {
	again := []serf.Member{listed("n2", "v", serf.StatusAlive)}
	for list, want := range map[*[]serf.Member]string{&again: "n2#u unlisted",
		new([]serf.Member): "n2#u unlisted"} {
		ms := newMembership("n1#self", func(id sbr.ID) bool { return id == "n2#u" })
		ms.look(0, one(serf.StatusAlive))
		require.Contains(t, says(ms.look(0, *list)), want)
	}
	ms := newMembership("n1#self", func(sbr.ID) bool { return true })
	ms.look(0, one(serf.StatusAlive))
	require.Equal(t, []string{"n2#u unlisted"}, says(ms.look(0, one(serf.StatusLeft))),
		"its goodbye would have been heard before")
}

// A successor may have another name, and come when the list has forgotten its predecessor, or while that is
// still called failed.
func TestMembership_SuccessorUnderAnotherName(t *testing.T) {
	successor := listed("n7", "v", serf.StatusAlive)
	successor.Tags[TagWas] = "u"
	looks(t, []look{
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: append(one(serf.StatusFailed), successor), want: []string{"n2#u ended", "n7#v up"}},
		{list: append(one(serf.StatusFailed), successor)},
	})
	ms := looks(t, []look{
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: nil, want: []string{"n2#u unlisted"}},
		{list: []serf.Member{successor}, want: []string{"n2#u ended", "n7#v up"}},
		{list: []serf.Member{successor}},
	})
	require.Equal(t, []sbr.ID{"n3#x"}, ms.running([]sbr.ID{"n2#u", "n3#x"}),
		"what others remember of it is history")
}

// A machine that was copied while its member ran has the state folder too: what it names as its predecessor
// runs on, elsewhere, until Serf says otherwise.
func TestMembership_CopiedStateFolder(t *testing.T) {
	clone := at(listed("n7", "v", serf.StatusAlive), 7947)
	clone.Tags[TagWas] = "u"
	ms := looks(t, []look{
		{list: append(one(serf.StatusAlive), clone), want: []string{"n2#u up", "n7#v up"}},
		{list: append(one(serf.StatusAlive), clone)},
	})
	require.Equal(t, []string{"n7 of n2"}, ms.copied)
	require.Equal(t, []string{"n2#u ended"}, says(ms.look(time.Second, append(one(serf.StatusFailed), clone))))
	require.Empty(t, ms.copied)
}

// A member without tags runs no resolver: it is joining, whatever it does, until it has tags.
func TestMembership_Untagged(t *testing.T) {
	plain := func(s serf.MemberStatus) []serf.Member { return []serf.Member{listed("n2", "", s)} }
	looks(t, []look{
		{list: plain(serf.StatusAlive), want: []string{"?n2 joining"}},
		{list: plain(serf.StatusLeaving)},
		{list: plain(serf.StatusFailed), want: []string{"?n2 failed"}},
		{list: one(serf.StatusAlive), want: []string{"?n2 ended", "n2#u up"}},
		{at: 1, list: plain(serf.StatusAlive)}, // its tags may come back
		{at: 1 + bareFor, list: plain(serf.StatusAlive), want: []string{"?n2 joining", "n2#u unlisted"}},
	})
}

// Changed tags and addresses are news, and the digest of the configuration is always the newest.
func TestMembership_ChangedTags(t *testing.T) {
	m := listed("n2", "u", serf.StatusAlive)
	ms := newMembership("n1#self", reachable)
	seen := func() sbr.Member {
		t.Helper()
		changes := ms.look(0, []serf.Member{m})
		require.Len(t, changes, 1)
		return changes[0].event.(sbr.MemberSeen).Member
	}
	require.Equal(t, sbr.Member{ID: "n2#u", Name: "n2", Addr: "10.0.0.1:7946", Born: 35, Seen: 3,
		Status: sbr.Up}, seen())
	m.Tags[TagRole] = "db,web"
	require.Equal(t, []string{"db", "web"}, seen().Roles)
	m.Tags[TagRole] = "db,cache"
	require.Equal(t, []string{"db", "cache"}, seen().Roles)
	m.Port = 7947
	require.Equal(t, "10.0.0.1:7947", seen().Addr)
	m.Tags[TagConfig] = "other"
	require.Empty(t, ms.look(0, []serf.Member{m}))
	require.Equal(t, "other", ms.known["n2#u"].tags[TagConfig])
}

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
			known, {list: bare(serf.StatusAlive)}, {at: bareFor - time.Second, list: bare(serf.StatusAlive)},
			{at: bareFor, list: one(serf.StatusAlive)},
		},
		"it fails as the member it was, and stays failed for as long as Serf says so": {
			known, {list: bare(serf.StatusAlive)}, {list: bare(serf.StatusFailed), want: []string{"n2#u failed"}},
			{at: 10 * bareFor, list: bare(serf.StatusFailed)},
			{at: 10*bareFor + 1, list: one(serf.StatusAlive), want: []string{"n2#u not failed"}},
		},
		"one that fails without tags is the member it was": {
			known, {list: bare(serf.StatusFailed), want: []string{"n2#u failed"}},
			{list: nil, want: []string{"n2#u unlisted"}},
		},
		"alive without tags for too long it runs no resolver any more": {
			known, {at: 1, list: bare(serf.StatusAlive)},
			{at: 1 + bareFor, list: bare(serf.StatusAlive), want: []string{"?n2 joining", "n2#u unlisted"}},
			{at: 10 * bareFor, list: bare(serf.StatusAlive)},
		},
		"the time counts anew after tags were there": {
			known, {at: 1, list: bare(serf.StatusAlive)}, {at: 2, list: one(serf.StatusAlive)},
			{at: bareFor, list: bare(serf.StatusAlive)},
			{at: 1 + bareFor, list: bare(serf.StatusAlive)},
		},
		"another incarnation is another member": {
			known, {list: bare(serf.StatusAlive)},
			{list: []serf.Member{listed("n2", "v", serf.StatusAlive)}, want: []string{"n2#u ended", "n2#v up"}},
		},
		"at another address it is another node": {
			known, {list: []serf.Member{at(listed("n2", "", serf.StatusAlive), 1)},
				want: []string{"?n2 joining", "n2#u unlisted"}},
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

func TestDepartures_WhoIsDownOrMissing(t *testing.T) {
	member := func(id sbr.ID, status sbr.Status) Peer {
		return Peer{Member: sbr.Member{ID: id, Status: status}, Serves: []string{"of." + string(id)}}
	}
	ids := func(list []Departure) (ids []sbr.ID) {
		for _, d := range list {
			ids = append(ids, d.ID)
			require.Equal(t, []string{"of." + string(d.ID)}, d.Serves)
		}
		return ids
	}
	start := time.Now()
	after := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	all := []Peer{member("a", sbr.Up), member("b", sbr.Up), member("c", sbr.Leaving)}
	list := departures(nil, nil, all, start, time.Minute)
	require.Empty(t, list)

	downed := []Peer{member("a", sbr.Up), member("b", sbr.Down), member("c", sbr.Leaving)}
	list = departures(list, all, downed, after(1), time.Minute)
	require.Equal(t, []sbr.ID{"b"}, ids(list))
	removed := []Peer{member("a", sbr.Up)}
	list = departures(list, downed, removed, after(2), time.Minute)
	require.Equal(t, []sbr.ID{"b", "c"}, ids(list))
	require.Equal(t, after(1), list[0].At, "its removal is not a second departure")
	require.Equal(t, after(2), list[1].At)

	require.Equal(t, []sbr.ID{"b"}, ids(departures(list, removed,
		[]Peer{member("a", sbr.Up), member("c", sbr.Up)}, after(3), time.Minute)), "who is back")
	require.Equal(t, []sbr.ID{"b", "c", "x"}, ids(departures(list, removed,
		append(removed, member("x", sbr.Down)), after(3), time.Minute)), "seen for the first time, and down")
	require.Empty(t, departures(list, removed, removed, after(2).Add(departedFor+1), time.Minute))

	young := Peer{Member: sbr.Member{ID: "y", Status: sbr.Up}, since: time.Minute - wire.OfferSpread + 1}
	gone := departures(nil, []Peer{young}, nil, start, time.Minute)
	require.True(t, gone[0].Unseen, "its tags may have been on their way")
	require.False(t, departures(nil, []Peer{young}, nil, start, time.Minute+1)[0].Unseen)

	var many []Peer
	for i := range departedCount + 10 {
		many = append(many, member(sbr.ID(fmt.Sprint(i)), sbr.Up))
	}
	list = departures(nil, many, nil, start, time.Minute)
	require.Len(t, list, departedCount)
	require.Equal(t, sbr.ID("10"), list[0].ID, "the oldest are forgotten")
}
