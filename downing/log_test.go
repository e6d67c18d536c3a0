package downing_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// logs are the logs of the members of a cluster, from the level Info on.
type logs map[string]*logtest.Log

func (l logs) config(name string, c *downing.Config) {
	clustertest.MajorityFirst(name, c)
	l[name] = new(logtest.Log)
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "deadline" {
			return slog.Attr{}
		}
		return a
	}
	c.Logger = slog.New(slog.NewTextHandler(l[name], &slog.HandlerOptions{ReplaceAttr: drop}))
}

var (
	uids      = regexp.MustCompile(`#[0-9a-zA-Z]+`)
	incidents = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	topics    = regexp.MustCompile(`topic=\S+ `)

	update = flag.Bool("update", false, "write the golden files anew")
)

// lines are a member's lines without what differs from run to run: the uids of incarnations are left out,
// ids are numbered. Of deadlines that follow one another the last one is taken. Members become
// unreachable, and are removed, in any order.
func (l logs) lines(member string) (out []string) {
	seen := make(map[string]string)
	number := func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("ID-%d", len(seen)+1)
		}
		return seen[id]
	}
	var alike []string
	deadline, last := "", ""
	for _, line := range append(l[member].With("topic="), "topic=end ") {
		line = incidents.ReplaceAllStringFunc(uids.ReplaceAllString(line, "#"), number)
		switch topic := topics.FindString(line); topic {
		case "topic=deadline ":
			deadline = line
		case "topic=suspended ":
			out = append(out, line)
		case last:
			alike = append(alike, line)
		default:
			slices.Sort(alike)
			out = append(out, alike...)
			if deadline != "" {
				out = append(out, deadline)
			}
			alike, deadline, last = []string{line}, "", topic
		}
	}
	return out
}

// The log alone tells what happened to a winner and to a loser, in one line each. Log, trace, page and
// status name one incident.
func TestLog_TellsTheIncident(t *testing.T) {
	l, x := make(logs), newTracers(t)
	config := func(name string, c *downing.Config) { l.config(name, c); x.config(name, c) }
	formed(t, 5, config, func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Partition(upper, lower))
		time.Sleep(5 * time.Second) // then the losing members begin to wait anew: their speed has no effect
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}, []string{"n5"}))
		c.Eventually(time.Minute, "nobody won",
			func() bool { return c.Member("n4").Down() && c.Member("n5").Down() })
		incident := c.provider("n1").Status().Incident
		time.Sleep(3 * time.Minute)
		for name, golden := range map[string]string{"n1": "winner", "n4": "loser"} {
			got := strings.Join(append(l.lines(name), ""), "\n")
			file := filepath.Join("testdata", "log-"+golden+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		}

		require.Regexp(t, "^"+incidents.String()+"$", incident)
		require.Empty(t, c.provider("n1").Status().Incident, "it is over")
		n1 := x.episode("n1")
		require.Equal(t, incident, attr(n1.Attributes, "sbr.incident"))
		for _, o := range c.Occurred("n1") {
			if o.Kind != string(sbr.TopicArmed) {
				require.Equal(t, incident, o.Incident, o.Kind)
			}
			require.Equal(t, string(c.id("n1")), o.Incarnation)
			if o.Kind != downing.OccurredTold { // n1 knows its verdict
				require.Len(t, l["n1"].With("sbr: "+o.Text+`"`), 1, "the page says what the log says")
			}
		}
		shared := "trace=" + n1.SpanContext.TraceID().String()
		for name, kinds := range map[string][]string{
			"n1": {"verdict", "resumed", "removed", downing.OccurredReleased}, "n4": {"verdict", downing.OccurredDown},
		} {
			for _, kind := range kinds {
				for _, line := range l[name].With("topic=" + kind + " ") {
					require.Contains(t, line, shared, "the trace that both sides share")
				}
			}
			for _, line := range l[name].With("topic=unreachable ") {
				require.NotContains(t, line, "trace=", "nobody knows it yet")
			}
		}
	})
}

// The watch may show the free lease before the answer to its release is here.
func TestLog_ReleaseThatTheWatchSeesFirst(t *testing.T) {
	l := make(logs)
	formed(t, 3, l.config, func(t *testing.T, c *cluster) {
		c.Store.View("n1").SetDelay(storeDelay)
		c.Store.View("n2").SetDelay(storeDelay)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(time.Minute, "nobody won", func() bool { return c.Member("n3").Down() })
		time.Sleep(3 * time.Minute)
		require.Len(t, append(l["n1"].With("topic=lease-released "), l["n2"].With("topic=lease-released ")...), 1)
	})
}

// What a member waits for at its start is said once, not with every try.
func TestLog_WaitingAtTheStart(t *testing.T) {
	l, m := make(logs), newMeters(t)
	config := func(name string, c *downing.Config) { l.config(name, c); m.config(name, c) }
	formed(t, 5, config, func(t *testing.T, c *cluster) {
		minorityWins(t, c)
		c.Boot("n1")
		time.Sleep(time.Minute)
		m.require("n1", "sbr.waiting{for=newcomer} = 1", "sbr.waiting{for=lease} = 0")
		require.Len(t, l["n1"].With("topic=waiting"), 1)
		require.Len(t, l["n1"].With(`for=newcomer awaited="[n4#`), 1)
		require.Len(t, l["n1"].With("topic=suspended"), 1)
		require.Len(t, l["n1"].With("no survivor of the last verdict found"), 1)

		c.Store.View("n2").SetUnavailable(true)
		waited := make(chan float64, 1)
		go func() {
			time.Sleep(time.Minute)
			waited <- m.value("n2", "sbr.waiting{for=lease}")
			c.Store.View("n2").SetUnavailable(false)
		}()
		c.Boot("n2")
		require.InDelta(t, 1, <-waited, 0)
		require.Len(t, l["n2"].With("topic=waiting"), 1)
		require.Len(t, l["n2"].With("for=lease lease=payments-sbr"), 1)
		m.require("n2", "sbr.waiting{for=lease} = 0")
	})
}
