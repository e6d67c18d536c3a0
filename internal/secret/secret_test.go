package secret_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/secret"
)

func TestOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(" from a file \n"), 0o600))
	t.Setenv("SBR_TEST_SECRET", "from the environment")
	for _, c := range []struct{ value, file, variable, want, wrong string }{
		{"given", "", "SBR_TEST_SECRET", "given", ""},
		{"", file, "SBR_TEST_SECRET", " from a file ", ""},
		{"", "", "SBR_TEST_SECRET", "from the environment", ""},
		{"given", file, "", "", "both a.key and a.key-file are set: leave one out"},
		{"", "absent", "", "", "a.key-file: open absent"},
		{"", "", "SBR_TEST_UNSET", "", "set a.key-file or $SBR_TEST_UNSET"},
	} {
		got, err := secret.Of("a.key", c.value, c.file, c.variable)
		assert.Equal(t, c.want, got)
		assert.Equal(t, c.wrong == "", err == nil)
		if err != nil {
			assert.ErrorContains(t, err, c.wrong)
		}
	}
}
