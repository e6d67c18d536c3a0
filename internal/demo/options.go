package demo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxNodes bounds the cluster: beyond it one process no longer keeps Serf's timing.
const maxNodes = 50

// Options say what is shown; the flags of sbr demo explain them. Start from DefaultOptions.
type Options struct {
	Split       string // sizes of the sides, as 3/2: n1 and the following are the first side, and so on
	Strategy    string
	StableAfter time.Duration // counts for nothing with Defaults
	Defaults    bool
	Pause       string // empty: nobody
	Kubeconfig  string // empty: the lease is in memory
	Namespace   string
	System      string
}

// DefaultOptions is five nodes cut into three and two.
func DefaultOptions() Options {
	return Options{Split: "3/2", Strategy: "lease-majority", StableAfter: 5 * time.Second, System: "demo"}
}

// sides are the names of the members.
func (o *Options) sides() (sides [][]string, err error) {
	last := 0
	for part := range strings.SplitSeq(o.Split, "/") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > maxNodes {
			return nil, fmt.Errorf("split %q: write the sizes of the sides as 3/2 or 2/2/1, each at least 1", o.Split)
		}
		var side []string
		for range n {
			last++
			side = append(side, "n"+strconv.Itoa(last))
		}
		sides = append(sides, side)
	}
	switch {
	case len(sides) < 2:
		err = fmt.Errorf("split %q needs at least two sides, as in 3/2", o.Split)
	case last > maxNodes:
		err = fmt.Errorf("%d nodes are too many for one process: at most %d", last, maxNodes)
	}
	return sides, err
}

// Validate reports every problem at once.
func (o *Options) Validate() error {
	sides, err := o.sides()
	errs := []error{err}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	names := slices.Concat(sides...)
	check(o.StableAfter >= time.Second,
		"stable-after is %v: at least 1s, or the sides decide before they have noticed the cut", o.StableAfter)
	check(o.Pause == "" || slices.Contains(names, o.Pause), "pause %q: no such member, they are %s", o.Pause,
		strings.Join(names, " "))
	check(o.Namespace == "" || o.Kubeconfig != "",
		"namespace %q without a kubeconfig: the lease is in memory then", o.Namespace)
	check(o.System != "", "system is empty")
	return errors.Join(errs...)
}
