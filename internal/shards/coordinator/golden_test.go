package coordinator_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var update = flag.Bool("update", false, "rewrite the golden output in testdata")

// TestGolden plays the scenarios in testdata. A file opens with a comment that says what it proves. Then come blocks: commands, a line of four dashes, and
// what the machines of all members did, which -update rewrites; an empty line ends a block. The network takes 5 ms, a run 10 ms to stop.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(text), "# "), "a scenario opens with what it proves")
			var out strings.Builder
			s := stage{t: t}
			for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
				commands, _, _ := strings.Cut(block, "\n----")
				out.WriteString(commands + "\n")
				if strings.HasPrefix(commands, "#") {
					out.WriteString("\n")
					continue
				}
				s.out = nil
				for line := range strings.Lines(commands) {
					s.play(strings.Fields(line))
				}
				out.WriteString(strings.Join(append([]string{"----"}, s.out...), "\n") + "\n\n")
			}
			got := strings.TrimSpace(out.String()) + "\n"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// stage plays the commands of a scenario.
type stage struct {
	t     *testing.T
	w     *world
	out   []string
	quiet bool
}

var longNumber = regexp.MustCompile(`order \d{6,}`)

func (s *stage) play(words []string) {
	arg := func(i int) string {
		require.Greater(s.t, len(words), i, "%v", words)
		return words[i]
	}
	node := func() *node {
		n := s.w.node(sbr.ID(arg(1)))
		require.NotNil(s.t, n, "%v", words)
		return n
	}
	switch words[0] {
	case "world": // world SHARDS [lease]
		n, err := strconv.Atoi(arg(1))
		require.NoError(s.t, err)
		s.w = newWorld(s.t, 1, n, len(words) > 2)
		s.w.trace = func(format string, args ...any) { s.print(fmt.Sprintf(format, args...)) }
	case "join":
		for _, id := range words[1:] {
			s.w.join(sbr.ID(id))
		}
	case "quiet", "loud": // only starts and stops are shown, or everything is
		s.quiet = words[0] == "quiet"
	case "wait":
		d, err := time.ParseDuration(arg(1))
		require.NoError(s.t, err)
		s.w.pass(d)
	case "crash":
		node().crash()
	case "pause":
		node().pause()
	case "resume":
		node().resume()
	case "cut":
		node().isolate()
	case "connect":
		node().connect()
	case "leave":
		node().leave()
	case "coordinate":
		s.w.appoint(node())
	case "stop": // stop DURATION: how long runs take to stop
		d, err := time.ParseDuration(arg(1))
		require.NoError(s.t, err)
		s.w.stopTakes = func() time.Duration { return d }
	case "lose": // lose KIND [COUNT]: the next messages of a kind to or from another member
		s.lose(words)
	case "lease": // lease SHARD lost|taken|free
		s.lease(words)
	case "running":
		s.running()
	case "status":
		s.status()
	default:
		s.t.Fatalf("unknown command %v", words)
	}
}

func (s *stage) print(text string) {
	if s.quiet && !strings.Contains(text, "STARTS") && !strings.Contains(text, " stops ") && !strings.Contains(text, "(stuck)") && !strings.Contains(text, "(conflict)") {
		return
	}
	text = longNumber.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.ParseUint(m[len("order "):], 10, 64)
		return "order " + number(n)
	})
	s.out = append(s.out, strconv.FormatFloat(s.w.now.Seconds(), 'f', -1, 64)+"s "+text)
}

func (s *stage) lose(words []string) {
	count := 1
	if len(words) > 2 {
		count, _ = strconv.Atoi(words[2])
	}
	s.w.filter = func(from, to sbr.ID, m *message.Message) bool {
		if from == to || m.Kind.String() != words[1] || count == 0 {
			return false
		}
		count--
		s.print(fmt.Sprintf("LOST from %s to %s: %s", from, to, describe(s.w, m)))
		return true
	}
}

func (s *stage) lease(words []string) {
	shard, err := strconv.Atoi(words[1])
	require.NoError(s.t, err)
	l := s.w.lease(shard)
	switch words[2] {
	case "lost":
		l.lose(s.w, s.w.node(l.holder))
	case "taken":
		l.foreign = true
	case "free":
		l.foreign = false
	}
}

func (s *stage) running() {
	for _, n := range s.w.nodes {
		var list []string
		for shard := range s.w.shards {
			if r := n.runs[shard]; r != nil && !n.crashed {
				list = append(list, strconv.Itoa(shard))
			}
		}
		if len(list) > 0 {
			s.out = append(s.out, n.name+": "+strings.Join(list, " "))
		}
	}
}

func (s *stage) status() {
	st := s.w.chief.coord.Status()
	for _, x := range st.Shards {
		line := fmt.Sprintf("%s %s owner=%s", x.Shard, x.State, x.Owner)
		if x.To != "" {
			line += " to=" + string(x.To)
		}
		s.out = append(s.out, fmt.Sprintf("%s token=%s since=%v", line, number(x.Token), x.Since))
	}
	s.out = append(s.out, fmt.Sprintf("running=%d moving=%d waiting=%d unowned=%d silent=%v strangers=%v", st.Running, st.Moving, st.Waiting, st.Unowned, st.Silent,
		st.Strangers))
}
