package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/strategies"
)

func decide(t *testing.T, input string) (answer decideAnswer, status int, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	status = run([]string{"decide", "-o", "json"},
		streams{in: strings.NewReader(input), out: &out, err: &errOut})
	if status == 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &answer))
		require.Empty(t, errOut.String())
	} else {
		require.Empty(t, out.String())
	}
	return answer, status, errOut.String()
}

// The order of the input does not matter: neither of members nor of anything else.
func TestDecide_OrderOfTheInputDoesNotMatter(t *testing.T) {
	members := []string{`{"name":"A","age":2}`, `{"name":"B","age":1}`, `{"name":"C","status":"joining"}`,
		`{"name":"D","age":3}`}
	for _, strategy := range strategies.Keys() {
		input := func(members []string) string {
			return fmt.Sprintf(`{"strategy":%q,"settings":{"quorum-size":3,"address":"A"},"self":"A","unreachable":["D","C"],"members":[%s]}`,
				strategy, strings.Join(members, ","))
		}
		want, status, _ := decide(t, input(members))
		require.Zero(t, status)
		backwards := slices.Clone(members)
		slices.Reverse(backwards)
		got, _, _ := decide(t, input(backwards))
		require.Equal(t, want, got, strategy)
	}
}

// Ten thousand members are no strain.
func TestDecide_LargeClusters(t *testing.T) {
	const n = 10_000
	var members, unreachable []string
	for i := range n {
		members = append(members, fmt.Sprintf("{\n\"name\": \"n%d\",\n\"addr\": \"10.%d.%d.%d:7946\",\n\"status\": \"up\",\n\"roles\": [\"web\"],\n\"age\": %d\n}",
			i, i>>16, i>>8&255, i&255, i+1))
		if i >= n/2+1 {
			unreachable = append(unreachable, fmt.Sprintf("%q", fmt.Sprintf("n%d", i)))
		}
	}
	answer, status, stderr := decide(t,
		fmt.Sprintf(`{"strategy":"keep-majority","self":"n0","members":[%s],"unreachable":[%s]}`,
			strings.Join(members, ","), strings.Join(unreachable, ",")))
	require.Zero(t, status, stderr)
	require.Equal(t, "down-unreachable", answer.FinalDecision)
	require.Len(t, answer.Down, n/2-1)
	require.Len(t, answer.Survivors, n/2+1)
}

func TestDecide_TooLarge(t *testing.T) {
	_, status, stderr := decide(t, strings.Repeat(" ", maxDecideInput+1))
	require.Equal(t, exitBadInput, status)
	require.Equal(t, "sbr: standard input: the input is larger than 16777216 bytes\n", stderr)
}

// Whatever comes in: an answer that adds up, or error lines and exit status 2.
func FuzzDecide(f *testing.F) {
	for _, strategy := range strategies.Keys() {
		f.Add([]byte(fmt.Sprintf(`{"strategy":%q,"settings":{"quorum-size":2,"address":"A","down-all-when-indirectly-connected":"off"},"self":"A",
"members":[{"name":"A"},{"name":"B","age":1},{"name":"C","status":"joining"},{"name":"D","status":"exiting"}],
"reachability":[{"observer":"A","subject":"B"},{"observer":"B","subject":"C"}],"seen-by":["A"],"lease":"held"}`, strategy)))
	}
	f.Add([]byte("strategy: down-all\nself: A\nmembers: [{name: A}]\nunreachable: []"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := parseDecide("f", data)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") && !strings.HasSuffix(line, "problems more") {
					t.Fatalf("a problem without a place: %q", line)
				}
			}
			return
		}
		answer, view := in.decide()
		downable := 0
		for i := range view.Members {
			if view.Members[i].Downable() {
				downable++
			}
		}
		if len(answer.Down)+len(answer.Survivors) != downable {
			t.Fatalf("%d members can be downed, but down is %q and survivors are %q", downable, answer.Down,
				answer.Survivors)
		}
		if answer.Reason == "." || strings.Contains(answer.Reason, "\n") {
			t.Fatalf("no sentence: %q", answer.Reason)
		}
		if err := answer.write(&bytes.Buffer{}, &view); err != nil {
			t.Fatal(err)
		}
	})
}
