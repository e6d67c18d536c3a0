package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// stuck says in a few lines how far an explanation got: its last steps, and the calls of which one would have
// to be next.
func stuck(m porcupine.Model, info porcupine.LinearizationInfo, all []porcupine.Operation) string {
	longest := longestOf(info)
	state := m.Init()
	var lines []string
	left := slices.Clone(all)
	for _, op := range longest {
		_, state = m.Step(state, op.Input, op.Output)
		lines = append(lines, fmt.Sprintf("  %s", m.DescribeOperation(op.Input, op.Output)))
		if i := slices.IndexFunc(left, func(o porcupine.Operation) bool { return same(o, op) }); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	lines = lines[max(0, len(lines)-12):]
	lines = append(lines, "then: "+m.DescribeState(state), "and none of these can be next:")
	first := slices.MinFunc(left, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	for _, op := range left {
		if op.Call <= first.Return {
			lines = append(lines, fmt.Sprintf("  %s [%d, %d]", m.DescribeOperation(op.Input, op.Output), op.Call, op.Return))
		}
	}
	return strings.Join(lines, "\n")
}

func same(a, b porcupine.Operation) bool {
	return a.ClientId == b.ClientId && a.Call == b.Call && a.Return == b.Return && a.Input == b.Input
}

func longestOf(info porcupine.LinearizationInfo) (longest []porcupine.Operation) {
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, partial := range partition {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
	}
	return longest
}
