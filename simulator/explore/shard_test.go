package explore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Shards are disjoint and complete, for any range and any number of them; also when each is split again for its workers.
func TestShard_EverySeedIsInExactlyOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(1<<53-200, 1<<53-100)).Draw(t, "from")
		to := from + rapid.Uint64Range(0, 100).Draw(t, "more")
		of := rapid.IntRange(1, 30).Draw(t, "shards")
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		var all []uint64
		for i := 1; i <= of; i++ {
			s := Shard{Index: i, Of: of}
			whole := slices.Collect(s.Seeds(from, to))
			require.True(t, slices.IsSorted(whole))
			require.EqualValues(t, len(whole), s.Count(from, to))
			var parts []uint64
			for _, p := range s.Split(workers) {
				parts = append(parts, slices.Collect(p.Seeds(from, to))...)
			}
			slices.Sort(parts)
			require.Equal(t, whole, parts)
			all = append(all, whole...)
		}
		slices.Sort(all)
		require.Len(t, all, int(to-from)+1)
		require.Equal(t, all, slices.Compact(slices.Clone(all)))
		require.Equal(t, from, all[0])
		require.Equal(t, to, all[len(all)-1])
	})
}

// No shard has more than one seed more than another: the machines are done at the same time.
func TestShard_EqualParts(t *testing.T) {
	for _, of := range []int{1, 3, 7, 8} {
		var counts []uint64
		for i := 1; i <= of; i++ {
			counts = append(counts, Shard{Index: i, Of: of}.Count(1, 1000))
		}
		require.LessOrEqual(t, slices.Max(counts)-slices.Min(counts), uint64(1), counts)
	}
}

func TestShard_ZeroIsEverything(t *testing.T) {
	require.Equal(t, []uint64{5, 6, 7}, slices.Collect(Shard{}.Seeds(5, 7)))
	require.Equal(t, "1/1", Shard{}.String())
	require.NoError(t, Shard{}.Validate())
	require.Empty(t, slices.Collect(Shard{}.Seeds(7, 5)))
}

func TestShard_Parse(t *testing.T) {
	for _, good := range []string{"1/1", "2/8", "8/8", "1000000/1000000"} {
		s, err := ParseShard(good)
		require.NoError(t, err, good)
		require.Equal(t, good, s.String())
	}
	for bad, why := range map[string]string{
		"":                       "must be a part such as 2/8",
		"2":                      "must be a part such as 2/8",
		"a/b":                    "must be a part such as 2/8",
		"-1/8":                   "must be a part such as 2/8",
		"+1/8":                   "must be a part such as 2/8",
		"1/8/9":                  "must be a part such as 2/8",
		" 1/8":                   "must be a part such as 2/8",
		"99999999999999999999/8": "must be a part such as 2/8",
		"0/8":                    "shards count from 1/8 to 8/8",
		"9/8":                    "shards count from 1/8 to 8/8",
		"1/0":                    "the number of shards must be 1 to 1000000",
		"1/1000001":              "the number of shards must be 1 to 1000000",
	} {
		_, err := ParseShard(bad)
		require.ErrorContains(t, err, why, bad)
	}
}
