package formats

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jacoelho/xsd"
	"github.com/stretchr/testify/require"
)

// junitSchema is what all CI servers take.
func junitSchema(t *testing.T) *xsd.Schema {
	t.Helper()
	schema, err := xsd.LoadFile(filepath.Join("testdata", "junit.xsd"))
	require.NoError(t, err)
	return schema
}

// The report of the whole library is valid, also with runs that fail, whatever they are called.
func TestJUnit_OfTheProgram(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "sbr")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", bin, "./cmd/sbr").CombinedOutput()
	require.NoError(t, err, string(out))
	hostile := t.TempDir()
	for i, name := range []string{"<&\"'>", "]]>", "<![CDATA[", "<!-- -->", "\u202e\u2028", "🙂👩‍👩‍👧", "&#0;"} {
		text := fmt.Sprintf("name: %q\nrun-for: 10s\nexpect: {survivors: []}\n", name)
		require.NoError(t, os.WriteFile(filepath.Join(hostile, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600))
	}
	seeds := "1-50"
	if testing.Short() {
		seeds = "1-5"
	}
	report, err := exec.CommandContext(t.Context(), bin, "simulate", "../../simulator/scenarios", hostile, "--seeds", seeds, "-o", "junit").Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode(), "%s", exit.Stderr)
	require.NoError(t, junitSchema(t).Validate(bytes.NewReader(report)))
	require.Contains(t, string(report), "&lt;![CDATA[")
}

// The schema has teeth: each of these is refused by a server, and by it.
func TestJUnit_RefusesWhatServersRefuse(t *testing.T) {
	schema := junitSchema(t)
	report := func(suite, testcase, inside string) io.Reader {
		return strings.NewReader(fmt.Sprintf("<testsuites><testsuite %s><testcase %s>%s</testcase></testsuite></testsuites>", suite, testcase, inside))
	}
	suite, testcase := `name="a" tests="1" failures="0" errors="0"`, `name="a" classname="b" time="0.001"`
	require.NoError(t, schema.Validate(report(suite, testcase, "")))
	require.NoError(t, schema.Validate(report(suite, testcase, `<failure message="m" type="t">text</failure>`)))
	for why, bad := range map[string]io.Reader{
		"a case has no file":        report(suite, testcase+` file="x.yaml"`, ""),
		"a suite counts":            report(`name="a" tests="1" failures="0"`, testcase, ""),
		"a count is a number":       report(`name="a" tests="one" failures="0" errors="0"`, testcase, ""),
		"a case has a name":         report(suite, `classname="b" time="0.001"`, ""),
		"a time has no unit":        report(suite, `name="a" classname="b" time="1s"`, ""),
		"a time has a point":        report(suite, `name="a" classname="b" time="0,001"`, ""),
		"one outcome":               report(suite, testcase, `<failure message="m" type="t">x</failure><failure message="m" type="t">y</failure>`),
		"a failure has a message":   report(suite, testcase, `<failure type="t">x</failure>`),
		"no elements of one's own":  report(suite, testcase, `<replay/>`),
		"a case is one case":        strings.NewReader(`<testsuites><testsuite ` + suite + `><testcase ` + testcase + `/><testcase ` + testcase + `/></testsuite></testsuites>`),
		"properties come first":     strings.NewReader(`<testsuites><testsuite ` + suite + `><testcase ` + testcase + `/><properties><property name="a" value="b"/></properties></testsuite></testsuites>`),
		"somebody else's root":      strings.NewReader(`<report/>`),
		"control characters are no": strings.NewReader("<testsuites><testsuite " + suite + "><testcase name=\"\x1b\" classname=\"b\" time=\"0.001\"/></testsuite></testsuites>"),
	} {
		require.Error(t, schema.Validate(bad), why)
	}
}
