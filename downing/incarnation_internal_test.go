package downing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Beside the longest tags that a configuration may have there is room for the longest of the resolver's own.
func TestTags_OfAConfigurationLeaveRoom(t *testing.T) {
	t.Parallel()
	number := format36(math.MaxInt64)
	longest := map[string]string{
		TagUID: newUID(), TagBorn: format36(time.Now().UnixMilli()), TagSeen: number, TagConfig: "abcdefgh",
		TagStore: "abcdefgh", TagIn: number, TagVersion: wireVersion,
		TagWas: strings.Join(slices.Repeat([]string{newUID()}, maxPredecessors), ","),
	}
	for _, tag := range ourTags { // what a program's tag needs is asked for when it is attached
		require.True(t, tag == TagProbe || tag == TagServes || longest[tag] != "", tag)
	}
	for name, short := range map[string]int{"one tag": 0, "short ones": 5, "more than fifteen with ours": 9} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tags := make(map[string]string)
			for i := range short {
				tags[fmt.Sprint(i)] = "short"
			}
			for length := 1; ; length++ {
				tags["long"] = strings.Repeat("x", length)
				text, err := yaml.Marshal(map[string]any{"system": "s", "serf": map[string]any{"tags": tags}})
				require.NoError(t, err)
				n := tagBytes(withTags(tags, longest))
				if _, err = config.Parse("sbr.yaml", text); n > memberlist.MetaMaxSize {
					require.ErrorContains(t, err, fmt.Sprintf("serf.tags: take %d bytes", n))
					return
				}
				require.NoError(t, err, "%d bytes", n)
			}
		})
	}
}

// A node's name can be read from its incarnation, whatever characters it has.
func TestIncarnation_NameOf(t *testing.T) {
	for _, name := range []string{"n1", "a.b-c", "a#b", "#", "a?b", "日本", "n1#abcdefgh"} {
		m := serf.Member{Name: name, Tags: map[string]string{TagUID: newUID()}}
		require.Equal(t, name, NameOf(idOf(&m)))
		require.False(t, isUntagged(idOf(&m)))
		m.Tags = nil
		require.Equal(t, name, NameOf(idOf(&m)))
		require.True(t, isUntagged(idOf(&m)))
	}
	require.Equal(t, "no-incarnation", NameOf("no-incarnation"))
	require.Equal(t, "", NameOf(""))
}

// Each start is another incarnation, and the tags of all take little of Serf's 512 bytes.
func TestIncarnation_IsNewAtEachStart(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		uid := newUID()
		require.Len(t, uid, 8)
		require.False(t, seen[uid])
		seen[uid] = true
	}
	size := 0
	for k, v := range map[string]string{
		TagUID: newUID(), TagBorn: format36(time.Now().UnixMilli()), TagSeen: format36(math.MaxInt64),
		TagConfig: "abcdefgh",
	} {
		size += len(k) + len(v) + 2
	}
	require.Less(t, size, 100)
}

// A tag that is no number counts as zero: the youngest member, older than any verdict.
func TestIncarnation_TagsThatAreNoNumbers(t *testing.T) {
	for _, s := range []string{"", "-1", "!", "zzzzzzzzzzzzzzzz", "1 ", "٣"} {
		require.Zero(t, parse36(s), s)
	}
	for _, n := range []int64{0, 1, 35, 36, math.MaxInt64} {
		require.Equal(t, n, parse36(format36(n)))
	}
	m := serf.Member{Name: "n1", Tags: map[string]string{TagUID: "u", TagBorn: "x y", TagSeen: "-5"}}
	got := memberOf(&m, sbr.Up)
	require.Zero(t, got.Born)
	require.Zero(t, got.Seen)
	require.Empty(t, got.Roles)
}

// The incarnations of a host are known by its name, without what a start adds to it; other hosts stay others.
func TestHostOf(t *testing.T) {
	for id, want := range map[sbr.ID]string{
		"n1#a":                "n1",
		"n1#b":                "n1",
		"web.u0123456789#u":   "web",
		"Web-0.u9876543210#u": "web-0",
		"web-0.1b4e28ba-2fa1-11d2-883f-0016d3cca427#u": "web-0",
		"n1.example.com#u":        "n1.example.com",
		"db.dc1#u":                "db.dc1",
		"db.dc2#u":                "db.dc2",
		"n1.eu-west-1.internal#u": "n1.eu-west-1.internal",
		"?untagged":               "untagged",
	} {
		require.Equal(t, want, hostOf(id), id)
	}
}
