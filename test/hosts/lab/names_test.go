package lab

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidName(t *testing.T) {
	for _, good := range []string{"n1", "a.b-c", "API"} {
		require.NoError(t, validName(good))
	}
	for _, bad := range []string{"", "-x", ".", "..", "a/b", "a b", "bridge", "n\n", "123456789012345678901234567890123"} {
		require.Error(t, validName(bad), bad)
	}
}
