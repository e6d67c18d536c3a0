package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
)

func TestConfig_Validate(t *testing.T) {
	good := Config{}
	good.Path = "/var/lib/sbr/payments.lease"
	require.NoError(t, good.Validate())
	for path, want := range map[string]string{
		"": "set lease.file.path", "/var/lib/": "names a directory", ".": "names a directory", "a/..": "names a directory", "/": "names a directory",
	} {
		err := Config{Path: path}.Validate()
		require.ErrorContains(t, err, want)
		_, err = New(Config{Path: path})
		require.ErrorContains(t, err, want)
	}
}

func TestNew_TakesARelativePathOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := Config{}
	cfg.Path = "payments.lease"
	s, err := New(cfg)
	require.NoError(t, err)
	defer s.Close()
	require.True(t, filepath.IsAbs(s.String()))
	mustWrite(t, s, record("a", 1), "")
	t.Chdir(t.TempDir())
	require.EqualValues(t, 1, mustRead(t, s).Record.Token)
}

func TestStore_Modes(t *testing.T) {
	s := newStore(t, newPath(t))
	first := mustWrite(t, s, record("a", 1), "")
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Mode().Perm()
	}
	require.Zero(t, mode(s.path)&^0o644, "at most")
	require.NotZero(t, mode(s.path)&0o400)
	require.Zero(t, mode(s.lockPath())&0o077, "only the user who writes may lock")

	require.NoError(t, os.Chmod(s.path, 0o600))
	_, err := s.Write(t.Context(), record("a", 2), first.Version)
	require.ErrorIs(t, err, lease.ErrConflict, "another version for nothing, as documented")
	mustWrite(t, s, record("a", 2), mustRead(t, s).Version)
	require.Equal(t, os.FileMode(0o600), mode(s.path), "an operator's mode is kept")
}

func TestFactory_Paths(t *testing.T) {
	dir := t.TempDir()
	var log logtest.Log
	for _, c := range []struct{ path, name, want string }{
		{"payments.json", "", "payments.json"},
		{"payments.json", "other", "payments.json"},
		{"", "", "payments-sbr.lease"},
		{"", "other", "other.lease"},
		{"", "../../etc/passwd", "etc-passwd-g5knnsz2hdqrq.lease"},
		{"none/", "", "none/payments-sbr.lease"},
	} {
		s, err := lease.Open(t.Context(), Key, lease.Spec{
			System: "payments", Name: c.name, Logger: log.Logger(), Decode: decodeYAML(t, "path: "+dir+"/"+c.path),
		})
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, c.want), s.(*Store).String())
		require.NoError(t, s.(*Store).Close())
	}
	require.Contains(t, log.String(), "path="+filepath.Join(dir, "other.lease"))
}

// Where the path names a file, the resolver, a singleton and each shard would open one record.
func TestFactory_OneFileServesOneUse(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	open := func(path, name string) error {
		s, err := Factory(nil)(t.Context(), lease.Spec{System: "payments", Name: name,
			Decode: decodeYAML(t, "path: "+dir+"/"+path)})
		require.NoError(t, err)
		l, err := lease.New(s, "n1", lease.DefaultSettings(), lease.Options{Use: name})
		if err == nil {
			t.Cleanup(l.Close)
		}
		return err
	}
	require.NoError(t, open("real/sbr.lease", "payments-sbr"))
	require.NoError(t, open("real/sbr.lease", "payments-sbr"), "another member in this process")
	for _, path := range []string{"real/sbr.lease", "link/sbr.lease", "real/../real/sbr.lease"} {
		err := open(path, "payments-singleton-mailer")
		require.ErrorIs(t, err, lease.ErrInUse, path)
		require.ErrorContains(t, err, filepath.Join("real", "sbr.lease"))
		require.ErrorContains(t, err, "lease.file.path")
	}
	require.NoError(t, open("real", "payments-singleton-mailer"))
	require.NoError(t, open("real", "payments-shard-orders-1"))
}

func decodeYAML(t *testing.T, text string) func(any) error {
	var node yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(text), &node))
	return node.Decode
}

func TestFactory_Errors(t *testing.T) {
	for _, spec := range []lease.Spec{{System: "s"}, {System: "s", Decode: decodeYAML(t, `path: ""`)}} {
		_, err := Factory(nil)(t.Context(), spec)
		require.ErrorContains(t, err, "set lease.file.path")
	}
	_, err := Factory(nil)(t.Context(), lease.Spec{Decode: func(any) error { return errors.New("line 3") }})
	require.ErrorContains(t, err, "line 3")
}

func TestSanitizeName(t *testing.T) {
	for _, same := range []string{"payments-sbr", "a", "a.b_c-9", strings.Repeat("x", maxName)} {
		require.Equal(t, same, sanitizeName(same))
	}
	seen := map[string]string{}
	for _, name := range []string{
		"", "-", "..", ".", "/", "A", "a", "a/b", "a-b", "a b", "a\x00b", "ä", "größe", ".a", "a.", "-a", "Orders", "orders", "ORDERS",
		strings.Repeat("x", maxName+1), strings.Repeat("x", maxName+2), strings.Repeat("X", maxName),
		strings.Repeat("多", 200), "\xff",
	} {
		clean := sanitizeName(name)
		require.Regexp(t, `^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`, clean)
		require.LessOrEqual(t, len(clean), maxName)
		require.NotContains(t, seen, clean, "%q and %q are one", name, seen[clean])
		seen[clean] = name
	}
}
