package downing

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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

	require.Equal(t, []sbr.ID{"b"}, ids(departures(list, removed, []Peer{member("a", sbr.Up), member("c", sbr.Up)}, after(3), time.Minute)), "who is back")
	require.Equal(t, []sbr.ID{"b", "c", "x"}, ids(departures(list, removed, append(removed, member("x", sbr.Down)), after(3), time.Minute)), "seen for the first time, and down")
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
