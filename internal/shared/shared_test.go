package shared_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shared"
)

func TestValues(t *testing.T) {
	var values shared.Values[string, int]
	made, closed := 0, []int{}
	use := func() (int, func()) {
		v, end, err := values.Use("a", func() (int, error) { made++; return made, nil },
			func(v int) { closed = append(closed, v) })
		require.NoError(t, err)
		return v, end
	}
	_, _, err := values.Use("a", func() (int, error) { return 0, errors.New("no") }, nil)
	require.EqualError(t, err, "no")
	first, endFirst := use()
	again, endAgain := use()
	require.Equal(t, []int{1, 1}, []int{first, again})
	endFirst()
	endFirst()
	require.Empty(t, closed, "one still uses it")
	values.Forget("a")
	second, endSecond := use()
	require.Equal(t, 2, second)
	endAgain()
	require.Equal(t, []int{1}, closed)
	third, endThird := use()
	require.Equal(t, 2, third, "the end of a forgotten one takes nothing away")
	endSecond()
	endThird()
	require.Equal(t, []int{1, 2}, closed)
}
