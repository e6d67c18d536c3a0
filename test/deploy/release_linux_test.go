package deploy_test

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

const (
	version        = "1.2.3"
	releaseTimeout = 15 * time.Minute
)

// The configuration that a release uses is one.
func TestRelease_ConfigurationIsValid(t *testing.T) {
	out, err := runProgram(t, buildcache.Goreleaser, "..", "check")
	require.NoError(t, err, "%s", out)
	require.NotContains(t, out, "deprecated")
}

// TestRelease makes the release of the working tree for this machine, twice, and looks at everything in it.
func TestRelease(t *testing.T) {
	pathOf(t, buildcache.Goreleaser) // skips
	tree := commitTree(t)
	dist := makeRelease(t, tree)
	program := filepath.Join(unpack(t, dist), "sbr_"+version+"_linux_"+runtime.GOARCH, "sbr")

	t.Run("checksums", func(t *testing.T) {
		run(t, dist, "sha256sum", "--check", "--strict", "checksums.txt")
		sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
		require.NoError(t, err)
		require.Len(t, strings.Split(strings.TrimSpace(string(sums)), "\n"), 4, "archive, deb, rpm, SBOM")
	})
	t.Run("archive", func(t *testing.T) {
		for _, name := range []string{"LICENSE", "README.md", "examples/sbr.yaml", "systemd/sbr-agent.service",
			"man/man1/sbr.1.gz", "man/man1/sbr-agent.1.gz", "completions/sbr.bash", "completions/_sbr"} {
			require.FileExists(t, filepath.Join(filepath.Dir(program), name))
		}
		require.Contains(t, run(t, "", program, "version"), "sbr v"+version, "the version is the tag's")
		require.Contains(t, run(t, "", program, "config", "check", "-f",
			filepath.Join(filepath.Dir(program), "examples/sbr.yaml")), "is valid")
	})
	t.Run("an empty root is enough", func(t *testing.T) { emptyRoot(t, program) })
	t.Run("deb", func(t *testing.T) { debian(t, one(t, dist, "*.deb")) })
	t.Run("rpm", func(t *testing.T) { redHat(t, one(t, dist, "*.rpm")) })
	t.Run("SBOM", func(t *testing.T) { bill(t, one(t, dist, "*.cdx.json"), program) })
	t.Run("the same again", func(t *testing.T) {
		other := t.TempDir()
		require.NoError(t, os.CopyFS(other, os.DirFS(tree)))
		again := makeRelease(t, other)
		for _, pattern := range []string{"*.tar.gz", "*.deb", "*.rpm"} {
			first, err := os.ReadFile(one(t, dist, pattern))
			require.NoError(t, err)
			second, err := os.ReadFile(one(t, again, pattern))
			require.NoError(t, err)
			require.True(t, slices.Equal(first, second), "%s differs from one build to the next", pattern)
		}
	})
}

// commitTree returns a copy of the working tree, committed and tagged, whose release is for this machine
// alone.
func commitTree(t *testing.T) string {
	t.Helper()
	dir := copyTree(t)
	config := filepath.Join(dir, ".goreleaser.yaml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	for key, value := range map[string]string{"goos": runtime.GOOS, "goarch": runtime.GOARCH} {
		text = regexp.MustCompile(`(?m)^    `+key+`: \[.*\]$`).ReplaceAll(text, []byte("    "+key+": ["+value+"]"))
	}
	require.NoError(t, os.WriteFile(config, text, 0o600))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"remote", "add", "origin", "https://github.com/serf-sbr/serf-sbr.git"}, {"add", "-A"},
		{"-c", "user.name=release", "-c", "user.email=release@localhost", "commit", "-q", "--no-gpg-sign", "-m", "release"}, {"tag", "v" + version},
	} {
		run(t, dir, "git", args...)
	}
	return dir
}

// makeRelease returns the folder with the artifacts.
func makeRelease(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), releaseTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, pathOf(t, buildcache.Goreleaser), "release", "--clean",
		"--skip=publish,announce")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(pathOf(t, buildcache.Syft))+string(os.PathListSeparator)+
		os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, ".cache", "dist")
}

// copyTree copies what git knows of, or would know of.
func copyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for path := range strings.SplitSeq(strings.TrimSuffix(run(t, "..", "git", "ls-files", "-z", "--cached",
		"--others", "--exclude-standard"), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join("..", path))
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join("..", path))
		require.NoError(t, err)
		target := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, data, info.Mode().Perm()))
	}
	return dir
}

// run returns what a command printed on its output; it must succeed.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	// A commit of the same tree at the same time is the same commit.
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "LC_ALL=C")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s%s", program, strings.Join(args, " "), out, said.String())
	return string(out)
}

func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, paths, 1, pattern)
	return paths[0]
}

func unpack(t *testing.T, dist string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "tar", "-xzf", one(t, dist, "*.tar.gz"))
	return dir
}

// bill checks that the SBOM lists exactly the modules that the program was built from.
func bill(t *testing.T, path, program string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var sbom struct {
		BOMFormat, SpecVersion string
		Components             []struct{ Type, Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal(text, &sbom))
	require.Equal(t, "CycloneDX", sbom.BOMFormat)
	require.NotEmpty(t, sbom.SpecVersion)
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	want := []string{"stdlib"}
	for _, m := range append(info.Deps, &info.Main) {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range sbom.Components {
		if !strings.HasPrefix(c.PURL, "pkg:golang/") {
			continue
		}
		if c.Name == "stdlib" {
			c.Version = ""
		}
		got = append(got, strings.TrimSpace(c.Name+" "+c.Version))
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

// packaged are the files that a package must have; %s is what the systems differ in.
var packaged = []string{
	"/usr/bin/sbr", "/usr/lib/systemd/system/sbr-agent.service", "/usr/lib/sysusers.d/sbr.conf", "/etc/sbr",
	"/usr/share/doc/sbr/examples/sbr.yaml", "/usr/share/doc/sbr/examples/serf.service", "/usr/share/doc/sbr/examples/alerts.yaml",
	"/usr/share/doc/sbr/examples/dashboard.json", "/usr/share/man/man1/sbr-agent.1.gz", "/usr/share/man/man1/sbr.1.gz",
	"/usr/share/bash-completion/completions/sbr", "/usr/share/fish/vendor_completions.d/sbr.fish", "/usr/share/zsh/%s/_sbr",
}

// debian installs the package into an empty root, with its scripts, and removes it.
func debian(t *testing.T, deb string) {
	for _, tool := range []string{"dpkg", "dpkg-deb", "systemd-sysusers"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool + ": run on Debian or Ubuntu")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: dpkg installs for root only")
	}
	control := run(t, "", "dpkg-deb", "-I", deb)
	require.Contains(t, control, " Version: "+version+"\n")
	require.Contains(t, control, " Architecture: "+runtime.GOARCH+"\n")

	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "etc"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, text := range map[string]string{"var/lib/dpkg/status": "",
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	dpkg := []string{"--root=" + root, "--force-script-chrootless", "--force-not-root",
		"--log=" + filepath.Join(root, "dpkg.log")}
	run(t, "", "dpkg", append(dpkg, "-i", deb)...)
	for _, path := range packaged {
		path = filepath.Join(root, strings.ReplaceAll(path, "%s", "vendor-completions"))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o022, "%s: nobody but root writes", path)
	}
	users, err := os.ReadFile(filepath.Join(root, "etc/passwd"))
	require.NoError(t, err)
	require.Regexp(t, `(?m)^sbr:x:[0-9]+:[0-9]+:.*:/usr/sbin/nologin$`, string(users),
		"the unit's user is there")
	require.Contains(t, run(t, "", filepath.Join(root, "usr/bin/sbr"), "version"), "sbr v"+version)
	run(t, "", "dpkg", append(dpkg, "-r", "sbr")...)
	require.NoFileExists(t, filepath.Join(root, "usr/bin/sbr"))
}

// redHat lists the package. Nothing is installed: there is no rpm database here.
func redHat(t *testing.T, path string) {
	if _, err := exec.LookPath("rpm"); err != nil {
		t.Skip("needs rpm: apt-get install rpm")
	}
	files := strings.Split(strings.TrimSpace(run(t, "", "rpm", "-qpl", path)), "\n")
	for _, name := range packaged {
		require.Contains(t, files, strings.ReplaceAll(name, "%s", "site-functions"))
	}
	header := run(t, "", "rpm", "-qp", "--qf", "%{NAME} %{VERSION} %{ARCH} %{LICENSE}", path)
	require.Equal(t, fmt.Sprintf("sbr %s %s Apache-2.0", version,
		map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]), header)
	require.Contains(t, run(t, "", "rpm", "-qp", "--scripts", path), "systemd-sysusers")
}

// nobody is the user of the images.
const nobody = 65532

// emptyRoot runs the program where there is nothing but itself and a configuration, as an ordinary user who
// may write nowhere.
func emptyRoot(t *testing.T, program string) {
	file, err := elf.Open(program)
	require.NoError(t, err)
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "a static program needs no loader")
	}
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	require.NoError(t, file.Close())

	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	root := t.TempDir()
	for name, from := range map[string]string{"sbr": program, "sbr.yaml": "kubernetes/base/sidecar/sbr.yaml"} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, name), data, 0o755))
	}
	require.NoError(t, os.Chmod(root, 0o555))
	in := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/sbr", args...)
		cmd.Path, cmd.Dir, cmd.Env = "/sbr", "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root,
			Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := in("version")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "sbr v"+version)
	out, err = in("config", "check", "-f", "/sbr.yaml")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "/sbr.yaml is valid")
	out, err = in("agent", "--config", "/nothing.yaml")
	require.Error(t, err)
	require.Contains(t, out, "/nothing.yaml", "one line, and no trace of a program that needs more")
}
