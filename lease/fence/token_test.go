package fence

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]uint64{
		"1": 1, "10": 10, "42": 42, "9223372036854775807": Max,
		"": 0, "0": 0, "00": 0, "01": 0, "-1": 0, "+1": 0, " 1": 0, "1 ": 0, "1\n": 0, "1.0": 0, "1e3": 0, "0x1": 0, "1_000": 0, "١": 0,
		"9223372036854775808": 0, "18446744073709551615": 0, "18446744073709551617": 0, "nonsense": 0,
	} {
		got, err := Parse(text)
		require.Equal(t, want, got, "%q", text)
		if want == 0 {
			require.ErrorIs(t, err, ErrToken, "%q", text)
			continue
		}
		require.NoError(t, err, "%q", text)
		require.Equal(t, text, Format(got))
	}
}

func TestValid(t *testing.T) {
	require.ErrorContains(t, valid(0), "not held")
	require.NoError(t, valid(1))
	require.Equal(t, lease.MaxToken, Max, "every token of a lease passes a fence")
	require.NoError(t, valid(Max))
	for _, token := range []uint64{0, Max + 1, math.MaxUint64} {
		require.ErrorIs(t, valid(token), ErrToken)
	}
}

func TestContext_CarriesAToken(t *testing.T) {
	_, carried := FromContext(t.Context())
	require.False(t, carried)
	token, carried := FromContext(WithToken(WithToken(t.Context(), 1), 7))
	require.True(t, carried)
	require.EqualValues(t, 7, token)
}

var decimal = regexp.MustCompile(`^[1-9][0-9]*$`)

// Parse against a reading of the definition: a decimal number that a signed number of 64 bits can hold.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"1", "0", "", "007", "+1", "9223372036854775807", "9223372036854775808", "1_0", "１"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(text)
		n, ok := new(big.Int).SetString(text, 10)
		if !ok || !decimal.MatchString(text) || !n.IsInt64() {
			require.ErrorIs(t, err, ErrToken)
			require.Zero(t, token)
			return
		}
		require.NoError(t, err)
		require.Equal(t, n.Uint64(), token)
		require.NoError(t, valid(token))
		require.Equal(t, text, Format(token))
	})
}
