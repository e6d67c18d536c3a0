package timing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The bars end together, when the partition is resolved, and nothing is out of order.
func TestExplain_Bars(t *testing.T) {
	require.Equal(t, "..==--->", bar([]Part{{d: 2, mark: '.'}, {d: 2, mark: '='}, {d: 3, mark: '-'},
		{d: 1, mark: '>'}}, 1))
	require.Equal(t, ".=>>", bar([]Part{{d: 10, mark: '.'}, {d: 10, mark: '='}, {d: 20, mark: '>'}}, 10))
	require.Equal(t, ">", bar([]Part{{d: 4, mark: '.'}, {d: 7, mark: '>'}}, 10))
}
