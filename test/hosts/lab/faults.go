package lab

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// link is one direction between two hosts, by name.
type link struct{ from, to string }

// faults is what is wrong with the network. It knows nothing of packets: see rules.
type faults struct {
	cut   map[link]bool   // between members
	store map[string]bool // hosts that are cut off from the lease store
	loss  map[string]int  // percent of what a host receives
}

func newFaults() faults {
	return faults{cut: make(map[link]bool), store: make(map[string]bool), loss: make(map[string]int)}
}

func (f *faults) clone() faults {
	return faults{cut: maps.Clone(f.cut), store: maps.Clone(f.store), loss: maps.Clone(f.loss)}
}

// partition cuts whatever no group has in common. Hosts that are in no group keep all their links.
func (f *faults) partition(groups [][]string) {
	together := make(map[link]bool)
	var all []string
	for _, group := range groups {
		for _, a := range group {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
			for _, b := range group {
				together[link{a, b}] = true
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			if !together[link{a, b}] {
				f.cut[link{a, b}] = true
			}
		}
	}
}

func (f *faults) cutBoth(a, b string) {
	f.cut[link{a, b}] = true
	f.cut[link{b, a}] = true
}

// blocked reports whether nothing that from sends reaches to. store is the host of the lease store, empty if
// there is none.
func (f *faults) blocked(from, to, store string) bool {
	switch {
	case f.cut[link{from, to}]:
		return true
	case store == "":
		return false
	default:
		return from == store && f.store[to] || to == store && f.store[from]
	}
}

const table = "inet sbrlab"

// rules is a script for nft that makes host receive what the faults let through, and nothing else. It
// replaces in one step what was there.
func (f *faults) rules(host, store string, addresses map[string]netip.Addr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s\ndelete table %s\n", table, table)
	var drops []string
	for _, from := range slices.Sorted(maps.Keys(addresses)) {
		if from != host && f.blocked(from, host, store) {
			drops = append(drops, fmt.Sprintf("ip saddr %s drop", addresses[from]))
		}
	}
	if percent := f.loss[host]; percent > 0 {
		drops = append(drops, fmt.Sprintf(`iifname != "lo" numgen random mod 100 <= %d drop`, percent-1))
	}
	if len(drops) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "table %s {\n\tchain receive {\n\t\ttype filter hook input priority 0; policy accept;\n",
		table)
	for _, drop := range drops {
		fmt.Fprintf(&b, "\t\t%s\n", drop)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}
