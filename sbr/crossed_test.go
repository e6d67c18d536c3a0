package sbr

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The quick answer is that of a plain search, whatever the names are; and who is not crossed is not indirectly connected.
func TestCrossed_IsWhatASearchFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[ab]{0,3}|n[0-9]{1,2}#[12]|[a-z]{9}[0-9]`)
		reports := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Report {
			return Report{Observer: ID(name.Draw(t, "observer")), Subject: ID(name.Draw(t, "subject"))}
		})).Draw(t, "reports")
		search := false
		var members []Member
		for _, a := range reports {
			members = append(members, Member{ID: a.Observer, Status: Up}, Member{ID: a.Subject, Status: Up})
			for _, b := range reports {
				search = search || a.Observer == b.Subject
			}
		}
		require.Equal(t, search, Crossed(reports))
		v := NewView("", members, reports, nil)
		require.Equal(t, v.HasIndirectlyConnected(), len(v.IndirectlyConnected()) > 0)
	})
}

func TestCrossed_AllocatesNothingInACleanCut(t *testing.T) {
	var reports []Report
	for _, o := range []ID{"n1#a7", "n2#b8", "n3#c9"} {
		for _, s := range []ID{"n4#d1", "n5#e2"} {
			reports = append(reports, Report{Observer: o, Subject: s})
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { Crossed(reports) }))
}
