package downing

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// listed is a member as Serf lists it.
func listed(name, uid string, status serf.MemberStatus) serf.Member {
	m := serf.Member{Name: name, Addr: net.IPv4(10, 0, 0, 1), Port: 7946, Status: status}
	if uid != "" {
		m.Tags = map[string]string{TagUID: uid, TagBorn: "z", TagSeen: "3", TagConfig: "cfg"}
	}
	return m
}

// says turns changes into words: "n2#u up", "n2#u failed", "n2#u not failed", "n2#u gone".
func says(changes []change) (out []string) {
	for _, c := range changes {
		switch ev := c.event.(type) {
		case sbr.MemberSeen:
			out = append(out, string(c.id)+" "+ev.Member.Status.String())
		case sbr.MemberGone:
			out = append(out, string(c.id)+" gone")
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
	ms := newMembership("n1#u")
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

// The list is the truth: only what differs from the last look is reported.
func TestMembership_OnlyDifferencesAreReported(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{list: one(serf.StatusAlive)},
		{list: one(serf.StatusFailed), want: []string{"n2#u failed"}},
		{list: one(serf.StatusFailed)},
		{list: one(serf.StatusAlive), want: []string{"n2#u not failed"}},
		{list: nil, want: []string{"n2#u gone"}}, // reaped
		{list: nil},
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}}, // known from others only
		{list: one(serf.StatusNone), want: []string{"n2#u gone"}},
	})
}

// A graceful leave is no failure, in whichever order it is seen.
func TestMembership_GracefulLeave(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{at: 2 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u gone"}},
		{at: 3 * time.Second, list: one(serf.StatusLeft)},
	})
	looks(t, []look{ // the dead message overtakes the intent
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusFailed), want: []string{"n2#u failed"}},
		{at: 2 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u gone"}},
	})
	looks(t, []look{ // refuted: the member stays, and its next leave has its full time again
		{list: one(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{at: 20 * time.Second, list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 40 * time.Second, list: one(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{at: 60 * time.Second, list: one(serf.StatusLeft), want: []string{"n2#u gone"}},
	})
}

// A stale leave intent makes a live member `leaving` for ever. It counts as up, and its crash, which Serf then calls a leave, as
// a failure; once it is to be removed, nothing is left to wait for.
func TestMembership_ZombieCrashIsAFailure(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{at: 1 * time.Second, list: one(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{at: time.Second + zombieAfter - 1, list: one(serf.StatusLeaving)},
		{at: time.Second + zombieAfter, list: one(serf.StatusLeaving), want: []string{"n2#u up"}},
		{at: 10 * time.Minute, list: one(serf.StatusLeaving)},
		{at: 11 * time.Minute, list: one(serf.StatusLeft), want: []string{"n2#u failed"}},
		{at: 12 * time.Minute, list: one(serf.StatusLeft)},
		{at: 13 * time.Minute, list: one(serf.StatusLeft), do: func(ms *membership) { ms.removing([]sbr.ID{"n2#u", "n9#u"}) }, want: []string{"n2#u gone"}},
	})
	looks(t, []look{ // it comes back instead
		{list: one(serf.StatusLeaving), want: []string{"n2#u leaving"}},
		{at: zombieAfter, list: one(serf.StatusLeaving), want: []string{"n2#u up"}},
		{at: 5 * time.Minute, list: one(serf.StatusLeft), want: []string{"n2#u failed"}},
		{at: 6 * time.Minute, list: one(serf.StatusAlive), want: []string{"n2#u not failed"}},
		{at: 7 * time.Minute, list: one(serf.StatusLeft), want: []string{"n2#u gone"}},
	})
	looks(t, []look{ // a removal that Serf has still to carry out changes nothing by itself
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: one(serf.StatusFailed), do: func(ms *membership) { ms.removing([]sbr.ID{"n2#u"}) }},
	})
}

// A restart under the same name and address is another member, also when Serf never called the old one failed.
func TestMembership_RestartUnderTheSameName(t *testing.T) {
	looks(t, []look{
		{list: one(serf.StatusAlive), want: []string{"n2#u up"}},
		{list: []serf.Member{listed("n2", "v", serf.StatusAlive)}, want: []string{"n2#u gone", "n2#v up"}},
	})
	looks(t, []look{ // the failure of the old one is not inherited
		{list: one(serf.StatusFailed), want: []string{"n2#u failed", "n2#u up"}},
		{list: []serf.Member{listed("n2", "v", serf.StatusAlive)}, want: []string{"n2#u gone", "n2#v up"}},
	})
}

// A member without tags runs no resolver: it is joining, whatever it does, until it has tags.
func TestMembership_Untagged(t *testing.T) {
	plain := func(s serf.MemberStatus) []serf.Member { return []serf.Member{listed("n2", "", s)} }
	looks(t, []look{
		{list: plain(serf.StatusAlive), want: []string{"?n2 joining"}},
		{list: plain(serf.StatusLeaving)},
		{list: plain(serf.StatusFailed), want: []string{"?n2 failed"}},
		{list: one(serf.StatusAlive), want: []string{"?n2 gone", "n2#u up"}},
		{at: 1, list: plain(serf.StatusAlive)}, // its tags may come back
		{at: 1 + bareFor, list: plain(serf.StatusAlive), want: []string{"?n2 joining", "n2#u gone"}},
	})
}

// Changed tags and addresses are news, and the digest of the configuration is always the newest.
func TestMembership_ChangedTags(t *testing.T) {
	m := listed("n2", "u", serf.StatusAlive)
	ms := newMembership("n1#u")
	seen := func() sbr.Member {
		t.Helper()
		changes := ms.look(0, []serf.Member{m})
		require.Len(t, changes, 1)
		return changes[0].event.(sbr.MemberSeen).Member
	}
	require.Equal(t, sbr.Member{ID: "n2#u", Name: "n2", Addr: "10.0.0.1:7946", Born: 35, Seen: 3, Status: sbr.Up}, seen())
	m.Tags[TagRole] = "db,web"
	require.Equal(t, []string{"db", "web"}, seen().Roles)
	m.Tags[TagRole] = "db,cache"
	require.Equal(t, []string{"db", "cache"}, seen().Roles)
	m.Port = 7947
	require.Equal(t, "10.0.0.1:7947", seen().Addr)
	m.Tags[TagConfig] = "other"
	require.Empty(t, ms.look(0, []serf.Member{m}))
	require.Equal(t, "other", ms.known["n2#u"].config)
}
