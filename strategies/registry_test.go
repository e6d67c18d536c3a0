package strategies_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var builtin = []string{"down-all", "keep-majority", "keep-oldest", "keep-referee", "lease-majority", "static-quorum"}

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

func TestNew_CaseDoesNotMatter(t *testing.T) {
	s, err := strategies.New("Keep-MAJORITY", strategies.DefaultSettings())
	require.NoError(t, err)
	require.Equal(t, strategies.KeepMajority{}, s)
}

func TestNew_UnknownKey(t *testing.T) {
	const known = ": known are down-all, keep-majority, keep-oldest, keep-referee, lease-majority, static-quorum"
	for key, want := range map[string]string{
		"keep-majorty":   `unknown strategy "keep-majorty"` + known,
		"Keep_Oldest":    `unknown strategy "Keep_Oldest"` + known,
		"majority":       `unknown strategy "majority"` + known,
		"lease-majority": "",
		"auto-downing":   `unknown strategy "auto-downing"` + known,
		"":               `unknown strategy ""` + known,
	} {
		s, err := strategies.New(key, filled())
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.Nil(t, s)
		require.ErrorIs(t, err, strategies.ErrUnknown)
		require.EqualError(t, err, want)
	}
}

func TestNew_OnlyTheSelectedStrategyIsValidated(t *testing.T) {
	bad := strategies.Settings{KeepMajority: strategies.KeepMajority{Role: " "}, LeaseMajority: strategies.LeaseMajority{AcquireLeaseDelayForMinority: -1}}
	_, err := strategies.New("keep-oldest", bad)
	require.NoError(t, err)
	_, err = strategies.New("static-quorum", bad)
	require.EqualError(t, err, "static-quorum.quorum-size is 0: it must be at least 1")
	_, err = strategies.New("keep-referee", bad)
	require.EqualError(t, err, "keep-referee.address is empty: it must be the address (host:port) or the name of the referee")
}

func TestNew_AnErrorNamesEveryProblem(t *testing.T) {
	_, err := strategies.New("static-quorum", strategies.Settings{StaticQuorum: strategies.StaticQuorum{Role: " x"}})
	var many interface{ Unwrap() []error }
	require.True(t, errors.As(err, &many))
	require.Len(t, many.Unwrap(), 2)
}

func TestConformance_Defaults(t *testing.T) {
	d := strategies.DefaultSettings()
	require.True(t, d.KeepOldest.DownIfAlone, "keep-oldest.down-if-alone is on")
	require.Equal(t, 2*time.Second, d.LeaseMajority.AcquireLeaseDelayForMinority)
	require.Equal(t, 1, d.KeepReferee.DownAllIfLessThanNodes)
	require.Zero(t, d.StaticQuorum.QuorumSize, "static-quorum.quorum-size has no default: it must be set")
	for _, role := range []string{d.StaticQuorum.Role, d.KeepMajority.Role, d.KeepOldest.Role, d.LeaseMajority.Role} {
		require.Empty(t, role, "a role counts all members unless it is set")
	}
	require.True(t, slices.IsSorted(strategies.Keys()))
}
