package strategies_test

import (
	"errors"
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

func TestRegistry_FindsEveryStrategyWithItsSettings(t *testing.T) {
	require.Equal(t, builtin, strategies.Keys())
	for key, want := range map[string]sbr.Strategy{
		"keep-majority":  strategies.KeepMajority{Role: "b"},
		"static-quorum":  strategies.StaticQuorum{QuorumSize: 3, Role: "a"},
		"keep-oldest":    strategies.KeepOldest{DownIfAlone: true, Role: "c"},
		"keep-referee":   strategies.KeepReferee{Address: "n1", DownAllIfLessThanNodes: 1},
		"down-all":       strategies.DownAll{},
		"lease-majority": strategies.LeaseMajority{Role: "d", AcquireLeaseDelayForMinority: 2 * time.Second},
	} {
		got, err := strategies.New(key, filled())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

func TestRegistry_CaseDoesNotMatter(t *testing.T) {
	s, err := strategies.New("Keep-MAJORITY", strategies.DefaultSettings())
	require.NoError(t, err)
	require.Equal(t, strategies.KeepMajority{}, s)
}

func TestRegistry_UnknownKey(t *testing.T) {
	const known = ": known are down-all, keep-majority, keep-oldest, keep-referee, lease-majority, static-quorum"
	for key, want := range map[string]string{
		"keep-majorty":   `unknown strategy "keep-majorty"` + known + `; did you mean "keep-majority"?`,
		"Keep_Oldest":    `unknown strategy "Keep_Oldest"` + known + `; did you mean "keep-oldest"?`,
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

func TestRegistry_OnlyTheSelectedStrategyIsValidated(t *testing.T) {
	bad := strategies.Settings{KeepMajority: strategies.KeepMajority{Role: " "}, LeaseMajority: strategies.LeaseMajority{AcquireLeaseDelayForMinority: -1}}
	_, err := strategies.New("keep-oldest", bad)
	require.NoError(t, err)
	_, err = strategies.New("static-quorum", bad)
	require.EqualError(t, err, "static-quorum.quorum-size is 0: it must be at least 1")
	_, err = strategies.New("keep-referee", bad)
	require.EqualError(t, err, "keep-referee.address is empty: it must be the address (host:port) or the name of the referee")
}

func TestRegistry_RegisterAStrategyOfOnesOwn(t *testing.T) {
	r := strategies.NewRegistry()
	r.Register("Keep-None", func(strategies.Settings) sbr.Strategy { return always(sbr.DownAll) })
	require.Contains(t, r.Keys(), "keep-none")
	require.NotContains(t, strategies.Keys(), "keep-none", "registries do not share strategies")
	s, err := r.New("keep-none", strategies.Settings{})
	require.NoError(t, err)
	require.Equal(t, always(sbr.DownAll), s)
}

func TestRegistry_ZeroValueIsEmpty(t *testing.T) {
	var r strategies.Registry
	require.Empty(t, r.Keys())
	_, err := r.New("keep-majority", strategies.Settings{})
	require.ErrorIs(t, err, strategies.ErrUnknown)
	r.Register("one", func(strategies.Settings) sbr.Strategy { return strategies.DownAll{} })
	require.Equal(t, []string{"one"}, r.Keys())
}

func TestRegistry_PanicsOnMistakesOfTheProgram(t *testing.T) {
	factory := func(strategies.Settings) sbr.Strategy { return strategies.DownAll{} }
	r := strategies.NewRegistry()
	require.PanicsWithValue(t, `strategies: "down-all" is registered twice`, func() { r.Register("Down-All", factory) })
	require.PanicsWithValue(t, "strategies: a strategy needs a key", func() { r.Register("", factory) })
	require.PanicsWithValue(t, `strategies: "none" needs a factory`, func() { r.Register("none", nil) })
}

func TestRegistry_AnErrorNamesEveryProblem(t *testing.T) {
	_, err := strategies.New("static-quorum", strategies.Settings{StaticQuorum: strategies.StaticQuorum{Role: " x"}})
	var many interface{ Unwrap() []error }
	require.True(t, errors.As(err, &many))
	require.Len(t, many.Unwrap(), 2)
}
