package fence

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func TestValid(t *testing.T) {
	require.ErrorContains(t, valid(0), "not held")
	require.NoError(t, valid(1))
	require.Equal(t, lease.MaxToken, Max, "every token of a lease passes a fence")
	require.NoError(t, valid(Max))
	for _, token := range []uint64{0, Max + 1, math.MaxUint64} {
		require.ErrorIs(t, valid(token), ErrToken)
	}
}

var decimal = regexp.MustCompile(`^[1-9][0-9]*$`)

// Parse against a reading of the definition: a decimal number that a signed number of 64 bits can hold.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"1", "10", "0", "", "007", "-1", "+1", " 1", "1 ", "1\n", "1.0", "1e3", "0x1", "1_0", "١", "１", "nonsense",
		"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551617",
	} {
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
