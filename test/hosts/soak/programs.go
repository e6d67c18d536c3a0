//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// programs are the paths of what runs on the hosts, and what it calls itself.
type programs struct {
	sbr      string
	serf     map[mode]string
	ledger   string // the folder of internal/ledger/serve and write, and of test/hosts/shardhost
	versions []string
}

// newPrograms builds `sbr` into dir, unless it is given, and the stock agents, which are kept.
func newPrograms(ctx context.Context, dir string, progress io.Writer) (*programs, error) {
	p := &programs{serf: make(map[mode]string), ledger: filepath.Join(dir, "ledger")}
	commit := ""
	root, err := buildcache.Root()
	if err != nil {
		return nil, err
	}
	if err := cluster.BuildLoad(ctx, p.ledger); err != nil {
		return nil, err
	}
	if p.sbr, err = cluster.BuildSBR(ctx, dir); err != nil {
		return nil, err
	}
	// An archive of the sources has no commit, and a program that is given may be of another one.
	if said, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always",
		"--dirty").Output(); err == nil && os.Getenv(cluster.BinaryEnv) == "" {
		commit = " (" + strings.TrimSpace(string(said)) + ")"
	}
	for m, flavour := range map[mode]serftest.Flavour{moduleMode: serftest.Module, debianMode: serftest.Debian} {
		path, err := serftest.Ensure(ctx, flavour, progress)
		if err != nil {
			return nil, err
		}
		p.serf[m] = path
	}
	for _, x := range []struct{ label, path string }{{"", p.sbr}, {"serf ", p.serf[moduleMode]},
		{"Debian's serf 0.9.4, which calls itself ", p.serf[debianMode]}} {
		said, err := exec.CommandContext(ctx, x.path, "version").Output()
		if err != nil {
			return nil, fmt.Errorf("%s version: %w", x.path, err)
		}
		line, _, _ := strings.Cut(string(said), "\n")
		p.versions = append(p.versions, x.label+strings.TrimPrefix(strings.TrimSpace(line), "Serf "))
	}
	p.versions[0] += commit
	return p, nil
}

// processors is what the kernel has counted since the machine's start, in clock ticks.
type processors struct{ idle, total float64 }

// readProcessors reads the first line of /proc/stat; what cannot be read counts as nothing.
func readProcessors() processors {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processors{}
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	return parseProcessors(line)
}

// parseProcessors reads user, nice, system, idle, iowait, irq, softirq, steal; guests are counted among the
// users.
func parseProcessors(line string) (p processors) {
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil || i > 8 {
			continue
		}
		p.total += ticks
		if i == 4 || i == 5 {
			p.idle += ticks
		}
	}
	return p
}

// until is the share that was in use between two readings, from 0 to 1.
func (p processors) until(later processors) float64 {
	total := later.total - p.total
	if total <= 0 {
		return 0
	}
	return 1 - (later.idle-p.idle)/total
}
