package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// workflow is a file of GitHub Actions, as far as the tests look at it.
type workflow struct {
	Name string
	On   map[string]any
	Jobs map[string]struct {
		Uses     string
		Strategy struct{ Matrix struct{ Part []string } }
		Steps    []struct{ Uses, Run string }
	}
}

// readYAML reads a file into what it must be. A key that stands twice is an error, too.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	paths, err := filepath.Glob("../.github/workflows/*.yml")
	require.NoError(t, err)
	all := make(map[string]workflow)
	for _, p := range paths {
		var w workflow
		readYAML(t, p, &w)
		require.NotEmpty(t, w.On, p)
		require.NotEmpty(t, w.Jobs, p)
		all[filepath.Base(p)] = w
	}
	return all
}

var makeLine = regexp.MustCompile(`(?m)\bmake ([^\n&|;]+)`)

// targets are the targets of the lines that call make, options and variables left out.
func targets(script string) (all []string) {
	for _, m := range makeLine.FindAllStringSubmatch(script, -1) {
		for word := range strings.FieldsSeq(m[1]) {
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				all = append(all, word)
			}
		}
	}
	return all
}

// called are the targets that the workflows call, those of a matrix one by one.
func called(t *testing.T) (all []string) {
	t.Helper()
	for _, w := range workflows(t) {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				script := strings.ReplaceAll(step.Run, "${{ matrix.part }}", strings.Join(job.Strategy.Matrix.Part, " "))
				all = append(all, targets(script)...)
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// The workflows call targets that exist, and all that .ci/run calls, directly or as what others need.
func TestWorkflows_RunTheParts(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	script, err := os.ReadFile("../.ci/run")
	require.NoError(t, err)
	rule := func(target string) string {
		return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:.*$`).FindString(string(makefile))
	}
	reached := called(t)
	for i := 0; i < len(reached); i++ {
		require.NotEmpty(t, rule(reached[i]), "a workflow calls make %s", reached[i])
		_, needs, _ := strings.Cut(rule(reached[i]), ":")
		needs, _, _ = strings.Cut(needs, "##")
		for need := range strings.FieldsSeq(needs) {
			if rule(need) != "" && !slices.Contains(reached, need) {
				reached = append(reached, need)
			}
		}
	}
	code := regexp.MustCompile(`(?m)^ *(#|echo).*$`).ReplaceAllString(string(script), "")
	for _, target := range targets(code) {
		require.NotEmpty(t, rule(target), ".ci/run calls make %s", target)
		require.Contains(t, reached, target, ".ci/run calls make %s, and no workflow does", target)
	}
}

// What others have written is named by its commit, which nobody can change afterwards.
func TestWorkflows_PinActions(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w-]+/[\w/-]+@[0-9a-f]{40}$`)
	for name, w := range workflows(t) {
		for _, job := range w.Jobs {
			if own, isOwn := strings.CutPrefix(job.Uses, "./"); isOwn {
				require.FileExists(t, filepath.Join("..", own), name)
			}
			for _, step := range job.Steps {
				if step.Uses != "" {
					require.Regexp(t, pinned, step.Uses, name)
				}
			}
		}
	}
}

// Every module of the repository, and every folder with a Dockerfile, gets its updates.
func TestDependabot_KnowsEveryModule(t *testing.T) {
	var file struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	readYAML(t, "../.github/dependabot.yml", &file)
	listed := make(map[string][]string)
	for _, u := range file.Updates {
		listed[u.Ecosystem] = append(listed[u.Ecosystem], append(u.Directories, u.Directory)...)
	}
	want := make(map[string][]string)
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() == "go.mod":
			want["gomod"] = append(want["gomod"], path.Join("/", path.Dir(p)))
		case d.Name() == "Dockerfile":
			want["docker"] = append(want["docker"], path.Join("/", path.Dir(p)))
		}
		return nil
	}))
	want["github-actions"] = []string{"/"}
	for ecosystem, folders := range want {
		got := slices.DeleteFunc(listed[ecosystem], func(dir string) bool { return dir == "" })
		require.ElementsMatch(t, folders, got, ecosystem)
	}
}

// Issue forms are what GitHub shows: it ignores a form with a mistake without a word.
func TestIssueForms(t *testing.T) {
	type form struct {
		Name, Description string
		Body              []struct {
			Type, ID   string
			Attributes struct {
				Label, Value, Description, Render string
				Options                           []string
			}
			Validations struct{ Required bool }
		}
	}
	paths, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml")
	require.NoError(t, err)
	for _, p := range paths {
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		if filepath.Base(p) == "config.yml" {
			require.NoError(t, yaml.Unmarshal(text, new(any)), p)
			continue
		}
		var f form
		strict := yaml.NewDecoder(bytes.NewReader(text))
		strict.KnownFields(true)
		require.NoError(t, strict.Decode(&f), p)
		require.NotEmpty(t, f.Name, p)
		require.NotEmpty(t, f.Description, p)
		ids := make(map[string]bool)
		for _, field := range f.Body {
			require.Contains(t, []string{"markdown", "textarea", "input", "dropdown"}, field.Type, p)
			require.Equal(t, field.Type == "markdown", field.Attributes.Label == "", "%s: %s", p, field.ID)
			require.Equal(t, field.Type == "dropdown", field.Attributes.Options != nil, "%s: %s", p, field.ID)
			require.False(t, ids[field.ID], "%s: %q twice", p, field.ID)
			ids[field.ID] = true
		}
	}
}
