package strategies_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var builtin = []string{"down-all", "keep-majority", "keep-oldest", "keep-referee", "lease-majority",
	"static-quorum"}

func filled() strategies.Settings {
	s := strategies.DefaultSettings()
	s.StaticQuorum.QuorumSize, s.StaticQuorum.Role = 3, "a"
	s.KeepMajority.Role = "b"
	s.KeepOldest.Role = "c"
	s.KeepReferee.Address = "n1"
	s.LeaseMajority.Role = "d"
	return s
}

func TestNew_FindsEveryStrategyWithItsSettings(t *testing.T) {
	require.Equal(t, builtin, strategies.Keys())
	for key, want := range map[string]sbr.Strategy{
		"keep-majority": strategies.KeepMajority{Role: "b"},
		"static-quorum": strategies.StaticQuorum{QuorumSize: 3, Role: "a"},
		"keep-oldest":   strategies.KeepOldest{DownIfAlone: true, Role: "c"},
		"keep-referee":  strategies.KeepReferee{Address: "n1", DownAllIfLessThanNodes: 1},
		"down-all":      strategies.DownAll{},
		"lease-majority": strategies.LeaseMajority{
			Role: "d", AcquireLeaseDelayForMinority: 2 * time.Second, IndirectlyConnected: strategies.KeepLargestGroup,
		},
	} {
		got, err := strategies.New(key, filled())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestConformance_Defaults(t *testing.T) {
	d := strategies.DefaultSettings()
	require.True(t, d.KeepOldest.DownIfAlone, "keep-oldest.down-if-alone is on")
	require.Equal(t, 2*time.Second, d.LeaseMajority.AcquireLeaseDelayForMinority)
	require.Equal(t, 1, d.KeepReferee.DownAllIfLessThanNodes)
	require.Zero(t, d.StaticQuorum.QuorumSize, "static-quorum.quorum-size has no default: it must be set")
	for _, role := range []string{d.StaticQuorum.Role, d.KeepMajority.Role, d.KeepOldest.Role,
		d.LeaseMajority.Role} {
		require.Empty(t, role, "a role counts all members unless it is set")
	}
	require.True(t, slices.IsSorted(strategies.Keys()))
}

// Every problem of the strategy that is selected is named, a line each; those of others are not.
func TestNew_SaysWhatIsWrong(t *testing.T) {
	bad := strategies.Settings{
		KeepMajority: strategies.KeepMajority{Role: " web"}, KeepOldest: strategies.KeepOldest{Role: "\tweb"},
		StaticQuorum: strategies.StaticQuorum{QuorumSize: -2, Role: "web "},
		KeepReferee:  strategies.KeepReferee{Address: " ", DownAllIfLessThanNodes: -1},
		LeaseMajority: strategies.LeaseMajority{AcquireLeaseDelayForMinority: -time.Second, Role: " ",
			IndirectlyConnected: "up"},
	}
	const known = ": known are down-all, keep-majority, keep-oldest, keep-referee, lease-majority, static-quorum"
	for key, want := range map[string]string{
		"Keep-MAJORITY": `keep-majority.role is " web": it must not begin or end with a space`,
		"keep-oldest":   `keep-oldest.role is "\tweb": it must not begin or end with a space`,
		"static-quorum": "static-quorum.quorum-size is -2: it must be at least 1\n" +
			`static-quorum.role is "web ": it must not begin or end with a space`,
		"keep-referee": "keep-referee.address is empty: it must be the address (host:port) or the name of the referee\n" +
			"keep-referee.down-all-if-less-than-nodes is -1: it must not be negative",
		"lease-majority": "lease-majority.acquire-lease-delay-for-minority is -1s: it must not be negative\n" +
			`indirectly-connected is "up": it must be keep-largest-group or down` + "\n" +
			`lease-majority.role is " ": it must not begin or end with a space`,
		"keep-majorty": `unknown strategy "keep-majorty"` + known,
		"Keep_Oldest":  `unknown strategy "Keep_Oldest"` + known,
		"":             `unknown strategy ""` + known,
	} {
		s, err := strategies.New(key, bad)
		require.Nil(t, s)
		require.EqualError(t, err, want)
		require.Equal(t, strings.HasPrefix(want, "unknown"), errors.Is(err, strategies.ErrUnknown))
	}
	_, err := strategies.New("down-all", bad)
	require.NoError(t, err)
	require.EqualError(t, strategies.LeaseMajority{AcquireLeaseDelayForMinority: sbr.MaxDuration + 1}.Validate(),
		"lease-majority.acquire-lease-delay-for-minority is 1000h0m0.000000001s: it must be at most 1000h0m0s")
	require.EqualError(t, strategies.StaticQuorum{}.Validate(),
		"static-quorum.quorum-size is 0: it must be at least 1")
}
