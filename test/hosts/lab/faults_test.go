package lab

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// hears says which hosts hear which, one line a host.
func hears(f *faults, hosts []string, store string) string {
	var b strings.Builder
	for _, to := range hosts {
		b.WriteString(to + ":")
		for _, from := range hosts {
			if from != to && !f.blocked(from, to, store) {
				b.WriteString(" " + from)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func TestFaults_WhoHearsWhom(t *testing.T) {
	hosts := []string{"a", "b", "c", "s"}
	for _, tc := range []struct {
		name string
		do   func(f *faults)
		want string
	}{
		{"nothing", func(*faults) {}, lines("a: b c s", "b: a c s", "c: a b s", "s: a b c")},
		{"two sides, and the store for all", func(f *faults) { f.partition([][]string{{"a", "b"}, {"c"}}) },
			lines("a: b s", "b: a s", "c: s", "s: a b c")},
		{"a bridge", func(f *faults) { f.partition([][]string{{"a", "b"}, {"b", "c"}}) },
			lines("a: b s", "b: a c s", "c: b s", "s: a b c")},
		{"all apart", func(f *faults) { f.partition([][]string{{"a"}, {"b"}, {"c"}}) }, lines("a: s", "b: s", "c: s", "s: a b c")},
		{"a cut", func(f *faults) { f.cutBoth("a", "b") }, lines("a: c s", "b: c s", "c: a b s", "s: a b c")},
		{"one way", func(f *faults) { f.cut[link{"a", "b"}] = true }, lines("a: b c s", "b: c s", "c: a b s", "s: a b c")},
		{"no store", func(f *faults) { f.store["a"] = true }, lines("a: b c", "b: a c s", "c: a b s", "s: b c")},
		{"faults add up", func(f *faults) { f.cutBoth("a", "b"); f.partition([][]string{{"a", "b"}, {"c"}}) },
			lines("a: s", "b: s", "c: s", "s: a b c")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFaults()
			tc.do(&f)
			require.Equal(t, tc.want, hears(&f, hosts, "s"))
		})
	}
}

func TestFaults_CloneIsApart(t *testing.T) {
	f := newFaults()
	other := f.clone()
	other.cutBoth("a", "b")
	other.store["a"], other.loss["a"] = true, 1
	require.Empty(t, f.cut)
	require.Empty(t, f.store)
	require.Empty(t, f.loss)
}

var addresses = map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1"),
	"b": netip.MustParseAddr("10.0.0.2"), "s": netip.MustParseAddr("10.0.0.3")}

func TestRules_DropAtTheReceiver(t *testing.T) {
	f := newFaults()
	f.cut[link{"a", "b"}] = true
	f.store["b"] = true
	f.loss["b"] = 30
	require.Equal(t, `table inet sbrlab
delete table inet sbrlab
table inet sbrlab {
	chain receive {
		type filter hook input priority 0; policy accept;
		ip saddr 10.0.0.1 drop
		ip saddr 10.0.0.3 drop
		iifname != "lo" numgen random mod 100 <= 29 drop
	}
}
`, f.rules("b", "s", addresses))
	require.NotContains(t, f.rules("a", "s", addresses), "drop", "it still hears b")
	require.Contains(t, f.rules("s", "s", addresses), "ip saddr 10.0.0.2 drop")
}

func TestRules_WithoutFaultsRemoveTheTable(t *testing.T) {
	f := newFaults()
	require.Equal(t, "table inet sbrlab\ndelete table inet sbrlab\n", f.rules("a", "s", addresses))
}

func TestRules_AreTheSameForTheSameFaults(t *testing.T) {
	f := newFaults()
	f.partition([][]string{{"a"}, {"b"}, {"s"}})
	var all []string
	for range 20 {
		all = append(all, f.rules("a", "", addresses))
	}
	require.Len(t, slices.Compact(all), 1)
}
