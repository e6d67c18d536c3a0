package tools

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

const folder = "../../../deploy/docker"

// files are the Dockerfiles, by what their image runs.
var files = map[string]string{"/sbr": "Dockerfile", "/serf": "serf.Dockerfile"}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return text
}

// parse is what BuildKit does first. It returns the stages, and what its linter says.
func parse(text []byte) (stages []instructions.Stage, warnings []string, err error) {
	ast, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	for _, w := range ast.Warnings {
		warnings = append(warnings, w.Short)
	}
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) { warnings = append(warnings, rule+": "+message) }})
	stages, _, err = instructions.Parse(ast.AST, lint)
	return stages, warnings, err
}

func TestDockerfile_IsAcceptedByBuildKit(t *testing.T) {
	for _, name := range files {
		stages, warnings, err := parse(read(t, name))
		require.NoError(t, err, name)
		require.Empty(t, warnings, name)
		require.Len(t, stages, 2, name)
	}
}

// The image: one static program, a user that is not root by number, no shell needed.
func TestDockerfile_ImageIsMinimal(t *testing.T) {
	for program, name := range files {
		text := read(t, name)
		stages, _, err := parse(text)
		require.NoError(t, err)
		require.Regexp(t, `CGO_ENABLED=0 .*go build .*-trimpath`, strings.ReplaceAll(string(text), "\\\n", ""))
		last := stages[len(stages)-1]
		require.Regexp(t, `^[^:]+/static-debian[0-9]+:nonroot$`, last.BaseName)
		seen := map[string]bool{}
		for _, c := range last.Commands {
			seen[strings.ToLower(c.Name())] = true
			switch c := c.(type) {
			case *instructions.UserCommand:
				require.Regexp(t, regexp.MustCompile(`^[1-9][0-9]*:[1-9][0-9]*$`), c.User, name)
			case *instructions.EntrypointCommand:
				require.False(t, c.PrependShell, name)
				require.Equal(t, []string{program}, []string(c.CmdLine), name)
			case *instructions.CopyCommand:
				require.Equal(t, "build", c.From, "%s: from the build and nowhere else", name)
			case *instructions.RunCommand, *instructions.AddCommand, *instructions.HealthCheckCommand:
				require.Fail(t, "not in this image", "%s: %s", name, c)
			}
		}
		for _, needed := range []string{"user", "entrypoint", "copy", "label", "expose"} {
			require.True(t, seen[needed], "%s: no %s", name, needed)
		}
	}
}

// The build gets everything that git knows, and .git: a tracked file that is missing would make the version a
// modified one.
func TestDockerignore_KeepsWhatGitKnows(t *testing.T) {
	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, "Dockerfile.dockerignore")))
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	ignored := func(path string) bool {
		yes, err := matcher.MatchesOrParentMatches(path)
		require.NoError(t, err)
		return yes
	}
	tracked, err := exec.CommandContext(t.Context(), "git", "-C", "../../..", "ls-files", "-z").Output()
	require.NoError(t, err)
	require.NotEmpty(t, tracked)
	for path := range strings.SplitSeq(strings.Trim(string(tracked), "\x00"), "\x00") {
		require.False(t, ignored(path), path)
	}
	require.False(t, ignored(".git/HEAD"))
	require.True(t, ignored(".cache/bin/tool"))
	require.True(t, ignored("bin/sbr"))
}
