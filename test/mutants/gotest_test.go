package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadTests_NamesTheInnermostTestThatFailed(t *testing.T) {
	r, err := readTests("x.org/m", []byte(strings.Join([]string{
		`{"Action":"run","Package":"x.org/m/a","Test":"TestOne"}`,
		`{"Action":"run","Package":"x.org/m/a","Test":"TestOne/case"}`,
		`{"Action":"output","Package":"x.org/m/a","Test":"TestOne/case","Output":"seed 3: S2 broken at 4.000s: n1 goes on\n"}`,
		`{"Action":"output","Package":"x.org/m/a","Test":"TestOne/case","Output":"chain broken in 7 more ways\n"}`,
		`{"Action":"fail","Package":"x.org/m/a","Test":"TestOne"}`,
		`{"Action":"fail","Package":"x.org/m/a","Test":"TestOne/case"}`,
		`{"Action":"fail","Package":"x.org/m/a"}`,
	}, "\n")), false)
	require.NoError(t, err)
	require.Equal(t, result{Caught: "a: TestOne/case", Broken: []string{"S2", "chain"}}, r)
}

func TestReadTests_APanicIsOfTheTestThatRan(t *testing.T) {
	r, err := readTests("x.org/m", []byte(strings.Join([]string{
		`{"Action":"run","Package":"x.org/m/a","Test":"TestOne"}`,
		`{"Action":"pass","Package":"x.org/m/a","Test":"TestOne"}`,
		`{"Action":"run","Package":"x.org/m/a","Test":"TestTwo"}`,
		`{"Action":"output","Package":"x.org/m/a","Output":"fatal error: all goroutines are asleep - deadlock!\n"}`,
		`{"Action":"fail","Package":"x.org/m/a"}`,
	}, "\n")), false)
	require.NoError(t, err)
	require.Equal(t, result{Caught: "a: TestTwo"}, r)
}

// Only a test that failed is a catch: everything else would count a broken machine as a good suite.
func TestReadTests_ElseItIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		output string
		ok     bool
		want   string
	}{
		"no test ran":            {`{"Action":"pass","Package":"x.org/m/a"}`, true, "no test ran"},
		"nothing":                {"", false, "it failed, but no test did"},
		"the tests do not build": {"a_test.go:3: undefined: x\n" + `{"Action":"fail","Package":"x.org/m/a","FailedBuild":"x"}`, false, "undefined: x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTests("x.org/m", []byte(tc.output), tc.ok)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
