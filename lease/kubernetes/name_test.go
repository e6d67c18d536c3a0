package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestName(t *testing.T) {
	require.Equal(t, "payments-sbr", kubernetes.Name("payments"))
	require.Equal(t, "team-1-payments-sbr", kubernetes.Name("Team_1.Payments"))
	require.Equal(t, "sbr", kubernetes.Name(""))
	require.Equal(t, "sbr", kubernetes.Name("支払い"))
	long := kubernetes.Name(strings.Repeat("x", 80))
	require.Len(t, long, 63)
	require.NotEqual(t, long, kubernetes.Name(strings.Repeat("x", 81)))
}

func TestSanitizeName(t *testing.T) {
	for _, c := range []struct {
		in           string
		maxLen, hash int
		want         string
	}{
		{"my.lease_name", 63, 8, "my-lease-name"},
		{"-my-lease-", 63, 8, "my-lease"},
		{"my@lease!name", 63, 8, "myleasename"},
		{"Ünïcödé", 63, 8, "unicode"},
		{"ﬁle①", 63, 8, "file1"},
		{strings.Repeat("a", 63), 63, 8, strings.Repeat("a", 63)},
		{strings.Repeat("a", 100), 63, 8, strings.Repeat("a", 54) + "-falfs6ei"},
		{strings.Repeat("A", 100), 63, 8, strings.Repeat("a", 54) + "-3awgvijt"},
		{strings.Repeat("a", 100), 63, 0, strings.Repeat("a", 63)},
		{strings.Repeat("a", 53) + "--" + strings.Repeat("a", 45), 63, 0, strings.Repeat("a", 53) + "--" + strings.Repeat("a", 8)},
		{"abc-defgh", 4, 0, "abc"},
		{strings.Repeat("a", 100), 9, 8, "falfs6ei"},
		{strings.Repeat("a", 100), 5, 8, "falfs"},
	} {
		got, err := kubernetes.SanitizeName(c.in, c.maxLen, c.hash)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got, c.in)
	}
}

func TestSanitizeName_CutsNoHyphenBeforeTheHash(t *testing.T) {
	got, err := kubernetes.SanitizeName(strings.Repeat("a", 50)+"-----"+strings.Repeat("b", 50), 63, 8)
	require.NoError(t, err)
	require.Regexp(t, "^a{50}-[a-z2-7]{8}$", got)
}

func TestSanitizeName_Errors(t *testing.T) {
	for _, name := range []string{"", "---", "日本", "._"} {
		_, err := kubernetes.SanitizeName(name, 63, 8)
		require.ErrorContains(t, err, "at least one letter", name)
	}
	_, err := kubernetes.SanitizeName("a", 0, 8)
	require.Error(t, err)
	_, err = kubernetes.SanitizeName("a", 63, -1)
	require.Error(t, err)
}

func FuzzSanitizeName(f *testing.F) {
	f.Add("my.lease_name", 63, 8)
	f.Add(strings.Repeat("é", 70), 10, 52)
	f.Fuzz(func(t *testing.T, name string, maxLen, hash int) {
		got, err := kubernetes.SanitizeName(name, maxLen, hash)
		if err != nil {
			return
		}
		require.Regexp(t, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", got)
		require.LessOrEqual(t, len(got), maxLen)
		again, err := kubernetes.SanitizeName(got, maxLen, hash)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
