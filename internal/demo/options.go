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
	Nodes       int   // zero: the sum of Split
	Split       []int // n1 and the following are the first side, and so on
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
	return Options{Split: []int{3, 2}, Strategy: "lease-majority", StableAfter: 5 * time.Second, System: "demo"}
}

// ParseSplit reads sides written as 3/2 or 2/2/1.
func ParseSplit(s string) ([]int, error) {
	var sides []int
	for part := range strings.SplitSeq(s, "/") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("split %q: write the sizes of the sides as 3/2 or 2/2/1, each at least 1", s)
		}
		sides = append(sides, n)
	}
	return sides, nil
}

// Validate reports every problem at once and fills in Nodes.
func (o *Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	names := slices.Concat(o.sides()...)
	if o.Nodes == 0 {
		o.Nodes = len(names)
	}
	check(len(o.Split) > 1, "split needs at least two sides, as in 3/2")
	split := strings.ReplaceAll(strings.Trim(fmt.Sprint(o.Split), "[]"), " ", "/")
	check(len(names) == o.Nodes, "split %s makes %d nodes, but there are %d: the sides must add up", split, len(names), o.Nodes)
	check(o.Nodes <= maxNodes, "%d nodes are too many for one process: at most %d", o.Nodes, maxNodes)
	check(o.StableAfter >= time.Second, "stable-after is %v: at least 1s, or the sides decide before they have noticed the cut", o.StableAfter)
	check(o.Pause == "" || slices.Contains(names, o.Pause), "pause %q: no such member, they are n1 to n%d", o.Pause, o.Nodes)
	check(o.System != "", "system is empty")
	return errors.Join(errs...)
}

// sides are the names of the members: n1 and the following are the first side, and so on.
func (o *Options) sides() (sides [][]string) {
	last := 0
	for _, n := range o.Split {
		var side []string
		for range n {
			last++
			side = append(side, "n"+strconv.Itoa(last))
		}
		sides = append(sides, side)
	}
	return sides
}
