package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// picture is a drawn partition. "A Bj | C* Dl" has A (up) and B (joining) on the first side, C (up, with the
// role "r") and D (leaving) on the second. Letters behind the name are the status: j joining, w weakly-up, l
// leaving, x exiting, d down; none is up. Addresses and ages go by the alphabet: A has the lowest address and
// is the oldest.
type picture struct {
	members []sbr.Member
	sides   [][]sbr.ID
}

var suffixes = map[rune]sbr.Status{'j': sbr.Joining, 'w': sbr.WeaklyUp, 'l': sbr.Leaving, 'x': sbr.Exiting,
	'd': sbr.Down}

func draw(text string) picture {
	var p picture
	for side := range strings.SplitSeq(text, "|") {
		var ids []sbr.ID
		for word := range strings.FieldsSeq(side) {
			m := member(word)
			p.members = append(p.members, m)
			ids = append(ids, m.ID)
		}
		p.sides = append(p.sides, ids)
	}
	return p
}

func member(word string) sbr.Member {
	rank := int64(word[0]-'A') + 1
	m := sbr.Member{
		ID: sbr.ID(word[:1]), Name: word[:1], Addr: fmt.Sprintf("10.0.0.%d:7946", 100+rank), Born: rank,
		Status: sbr.Up,
	}
	for _, r := range word[1:] {
		if r == '*' {
			m.Roles = []string{"r"}
			continue
		}
		s, ok := suffixes[r]
		if !ok {
			panic("picture: unknown mark in " + word)
		}
		m.Status = s
	}
	return m
}

// oldest makes the named members the oldest, in that order.
func (p picture) oldest(names string) picture {
	p.members = slices.Clone(p.members)
	for i, name := range strings.Fields(names) {
		for j := range p.members {
			if p.members[j].Name == name {
				p.members[j].Born = int64(i - 100)
			}
		}
	}
	return p
}

// from is the view of the first member of a side after a clean cut: it cannot reach the other sides.
func (p picture) from(side int) sbr.View {
	members := slices.Clone(p.members)
	for i := range members {
		members[i].Unreachable = !slices.Contains(p.sides[side], members[i].ID)
	}
	self := sbr.ID("nobody")
	if len(p.sides[side]) > 0 {
		self = p.sides[side][0]
	}
	return sbr.NewView(self, members, nil, nil)
}

// gossip is the view of a side as the reference's own unit tests set it up: the first member reports
// everybody on the other sides, the given reports ("B>C C>B") come on top, every subject is unreachable, and
// the side shares one view.
func (p picture) gossip(side int, reports string) sbr.View {
	self := p.sides[side][0]
	rs := parseReports(reports)
	for _, m := range p.members {
		if !slices.Contains(p.sides[side], m.ID) {
			rs = append(rs, sbr.Report{Observer: self, Subject: m.ID})
		}
	}
	members := slices.Clone(p.members)
	for i := range members {
		members[i].Unreachable = slices.ContainsFunc(rs,
			func(r sbr.Report) bool { return r.Subject == members[i].ID })
	}
	return sbr.NewView(self, members, rs, p.sides[side])
}

// parseReports reads "B>C" (B cannot reach C) and "B<>C" (neither reaches the other).
func parseReports(text string) (rs []sbr.Report) {
	for word := range strings.FieldsSeq(text) {
		a, b, both := strings.Cut(word, "<>")
		if !both {
			a, b, _ = strings.Cut(word, ">")
		}
		rs = append(rs, sbr.Report{Observer: sbr.ID(a), Subject: sbr.ID(b)})
		if both {
			rs = append(rs, sbr.Report{Observer: sbr.ID(b), Subject: sbr.ID(a)})
		}
	}
	return rs
}

// names writes members as the tests do: "A B C".
func names(ids []sbr.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, " ")
}

// rule is one row of a table test, named after the rule that it shows.
type rule struct {
	name     string
	strategy sbr.Strategy
	picture  picture
	side     int
	reports  string // when not empty, the view is that of picture.gossip
	want     sbr.Kind
	down     string
	reason   string // "": not looked at
}

func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			v := r.picture.from(r.side)
			if r.reports != "" {
				v = r.picture.gossip(r.side, r.reports)
			}
			d := sbr.Decide(r.strategy, &v, sbr.Off)
			require.Equal(t, r.want.String(), d.Kind.String(), d.Reason)
			require.Equal(t, r.down, names(d.Down), d.Reason)
			if r.reason != "" {
				require.Equal(t, r.reason, d.Reason)
			}
			require.NotEmpty(t, d.Reason)
			require.False(t, strings.HasSuffix(d.Reason, "."), "a reason is one sentence without a full stop")
		})
	}
}
