package explore

import (
	"regexp"
	"strings"
)

// Failure is one kind of broken promise, with the run of the lowest seed that shows it.
type Failure struct {
	// Promise is what was broken, such as S1; "panic" for a run that did not end, "expect" for what a scenario expected in vain.
	Promise string `json:"promise"`
	// Shape is the text without times, names and numbers. Failures of one promise and one shape are of one kind.
	Shape string `json:"shape"`
	// Text is what was broken in the run of Seed.
	Text string `json:"text"`
	Seed uint64 `json:"seed"`
	// Runs is how many runs failed in this way.
	Runs uint64 `json:"runs"`
	// Scenario is a scenario file that fails in this way when it is played with Seed: the smallest one that was found, or that of the seed.
	Scenario string `json:"scenario"`
	// Steps and Members are how many of them it has.
	Steps   int `json:"steps"`
	Members int `json:"members"`
	// Replay is the command that shows it.
	Replay string `json:"replay"`
}

// kind is what makes two failures the same.
type kind struct{ promise, shape string }

var (
	brokenAt   = regexp.MustCompile(`^(\S+) broken at [^ :]+: (.*)$`)
	brokenMore = regexp.MustCompile(`^\S+ broken in [0-9]+ more ways$`)
)

// kindsOf sorts the failures of one run into kinds. Of each kind it keeps the first line.
func kindsOf(failures []string) map[kind]string {
	all := make(map[kind]string)
	for _, line := range failures {
		k := kind{promise: "expect"}
		text := line
		switch m := brokenAt.FindStringSubmatch(line); {
		case m != nil:
			k.promise, text = m[1], m[2]
		case brokenMore.MatchString(line):
			continue
		}
		k.shape = shapeOf(text)
		if _, known := all[k]; !known {
			all[k] = line
		}
	}
	return all
}

var (
	shapeList     = regexp.MustCompile(`\[[^\][]*\]`)
	shapeDuration = regexp.MustCompile(`-?\b([0-9]+(\.[0-9]+)?(ns|µs|ms|s|m|h))+\b`)
	shapeNumber   = regexp.MustCompile(`[0-9]+([.#][0-9]+)*`)
)

// shapeOf leaves out what differs between two runs that fail for the same reason: lists, times, numbers, and with them the names of
// members, which the generator numbers.
func shapeOf(text string) string {
	text = shapeList.ReplaceAllString(text, "[…]")
	text = shapeDuration.ReplaceAllString(text, "…")
	text = shapeNumber.ReplaceAllString(text, "…")
	const limit = 300
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
