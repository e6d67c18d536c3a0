package strategies_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// FuzzDecide builds a view from any bytes, also one that no resolver would build, and looks for panics and
// broken promises.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 2, 0x12, 0x92, 0x12, 0x11, 0x21})
	f.Add([]byte{5, 4, 0x02, 0x42, 0x82, 0xc2, 0x03, 0x10, 0x01, 0x24, 0x42, 0xff, 0x13})
	f.Fuzz(func(t *testing.T, data []byte) {
		v := decode(data)
		for i := range 40 {
			s := seeded(uint64(i)).strategy()
			promises(t, v, sbr.Decide(s, &v, float64(i%5)/4))
		}
		v.Leader()
		v.Responsible()
		v.Oldest("r")
	})
}

// decode reads how many members and reports there are, then a byte for each: low bits the status, high bits
// reachability and role; or the two ends. What is left is the seen-by set. IDs may be used twice, and reports
// may speak of strangers.
func decode(data []byte) sbr.View {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	var members []sbr.Member
	var reports []sbr.Report
	n, k := next()%16, next()%16
	id := func(b int) sbr.ID { return sbr.ID(fmt.Sprint(b % 12)) }
	for i := range n {
		b := next()
		m := sbr.Member{ID: id(i), Name: string(id(b >> 3)), Addr: fmt.Sprintf("h:%d", b>>2), Born: int64(b>>4) - 3, Status: sbr.Status(b & 7), Unreachable: b&0x40 != 0}
		if b&0x80 != 0 {
			m.Roles = []string{"r"}
		}
		members = append(members, m)
	}
	for range k {
		b := next()
		reports = append(reports, sbr.Report{Observer: id(b & 15), Subject: id(b >> 4)})
	}
	var seen []sbr.ID
	for len(data) > 0 {
		seen = append(seen, id(next()))
	}
	return sbr.NewView(id(n), members, reports, seen)
}

// promises are what holds for every decision about every view.
func promises(t *testing.T, v sbr.View, d sbr.Decision) {
	t.Helper()
	require.NotEmpty(t, d.Reason)
	require.GreaterOrEqual(t, d.Delay, 0*d.Delay)
	if d.Final == sbr.None {
		require.Empty(t, d.Down)
	}
	if !d.Kind.NeedsLease() {
		require.Zero(t, d.Delay)
	}
	// Down lists downable members only, once each, in address order.
	downable := slices.DeleteFunc(slices.Clone(v.Members), func(m sbr.Member) bool { return !m.Downable() })
	for _, id := range d.Down {
		i := slices.IndexFunc(downable, func(m sbr.Member) bool { return m.ID == id })
		require.GreaterOrEqual(t, i, 0, "%s: %v", id, d.Down)
		downable = downable[i+1:]
	}
	for _, final := range []sbr.Kind{d.Final.Granted(), d.Final.Reverse()} {
		require.False(t, final.NeedsLease())
	}
	r := d.Reversed(&v, 0.5)
	require.False(t, r.Final.NeedsLease())
}
