//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// prefix begins the name of every network namespace that a lab makes.
const prefix = "sbrlab"

// bridgeName is the part of a namespace's name that a host has for its own: no host may be called so.
const bridgeName = "bridge"

// labName is what the namespaces of one lab of this process have in common.
func labName(id string) string { return fmt.Sprintf("%s-%d-%s", prefix, os.Getpid(), id) }

const (
	namespaces = "/run/netns"
	// emptyTimeout bounds how long killed processes take to go.
	emptyTimeout = 10 * time.Second
	emptyPoll    = 5 * time.Millisecond
)

// failed is the error of an ip or nft command.
func failed(command, said string, err error) error {
	return fmt.Errorf("lab: %s: %w: %s", command, err, strings.Join(strings.Fields(said), " "))
}

// runIP runs a command of ip.
func runIP(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdin = strings.NewReader(stdin)
	// A Ctrl-C is for this process, not for a command that is half through.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", failed("ip "+strings.Join(args, " "), string(said), err)
	}
	return string(said), nil
}

func addNamespace(ctx context.Context, name string) error {
	_, err := runIP(ctx, "", "netns", "add", name)
	return err
}

// ip runs commands of ip, one a line, in a namespace.
func ip(ctx context.Context, namespace string, lines ...string) error {
	_, err := runIP(ctx, strings.Join(lines, "\n"), "-n", namespace, "-batch", "-")
	return err
}

// listNamespaces returns those whose name begins so. That there is no folder for them means that there is
// none.
func listNamespaces(begins string) ([]string, error) {
	entries, err := os.ReadDir(namespaces)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), begins+"-") {
			found = append(found, e.Name())
		}
	}
	return found, nil
}

// removeNamespaces ends all processes in the namespaces of a lab, and removes them.
func removeNamespaces(ctx context.Context, lab string) error {
	all, err := listNamespaces(lab)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range all {
		errs = append(errs, removeNamespace(ctx, name))
	}
	return errors.Join(errs...)
}

// removeNamespace removes the links first: a namespace lives on, with its links, as long as any process has a
// socket there.
func removeNamespace(ctx context.Context, name string) error {
	if err := empty(ctx, name); err != nil {
		return err
	}
	links, err := runIP(ctx, "", "-n", name, "-brief", "link", "show", "type", "veth")
	if err == nil {
		for line := range strings.Lines(links) {
			link, _, _ := strings.Cut(strings.Fields(line)[0], "@")
			// The other end may have gone meanwhile, and this one with it.
			_, _ = runIP(ctx, "", "-n", name, "link", "del", link)
		}
	}
	if _, err := runIP(ctx, "", "netns", "del", name); err != nil && exists(filepath.Join(namespaces, name)) {
		return err
	}
	return nil
}

// empty kills what runs in a namespace until nothing does.
func empty(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	for {
		pids, err := pidsIn(ctx, name)
		if err != nil || len(pids) == 0 {
			return err
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if !slept(ctx, emptyPoll) {
			return fmt.Errorf("lab: processes %v in %s do not die", pids, name)
		}
	}
}

// pidsIn returns the processes in a namespace, but for this one: its threads may be there.
func pidsIn(ctx context.Context, name string) ([]int, error) {
	said, err := runIP(ctx, "", "netns", "pids", name)
	if err != nil {
		if !exists(filepath.Join(namespaces, name)) {
			return nil, nil
		}
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(said) {
		if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
