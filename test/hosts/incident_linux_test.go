package hosts_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/browser"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

var update = flag.Bool("update", false, "write the logs, the trace and the pictures of docs/incident.md anew")

// What the log tells, in this order.
var (
	winnersStory = []string{
		`armed: 5 members, nothing changed for \d(\.\d)?s"`,
		`suspended: \d members? (is|are) unreachable`,
		`decides in 20s unless something changes`,
		`acquire-lease-and-down-unreachable: 3 of 5 .* reachable, a majority \(2 members go down\)`,
		`asks for the lease hosts-sbr`,
		`verdict 1 by n\d: 3 survivors, 2 down: 3 of 5 counted members are reachable, a majority`,
		`resumed: every member that was not downed is reachable`,
		`n[45] is removed`,
		`n[45] is removed`,
		`holds the lease no longer`,
	}
	losersStory = []string{
		`armed: 5 members, nothing changed for \d(\.\d)?s"`,
		`suspended: \d members? (is|are) unreachable`,
		`verdict 1 by n\d: 3 survivors, 2 down`,
		`down: verdict 1 by n\d does not list this member among its survivors`,
		`the agent ends.*exit-status=70`,
		`armed: 5 members, nothing changed for \d(\.\d)?s"`,
	}
	tracesStory = []string{
		`^trace [0-9a-f]{32}`, `n1 +sbr.partition .*resolved`, `sbr.stable`, `sbr.lease.acquire .*granted`,
		`sbr.tell`, `sbr.removal`,
		`n4 +sbr.partition .*down`, `n5 +sbr.partition .*down`,
	}
)

// told fails where a text does not tell a story in its order.
func told(t *testing.T, story []string, text string) {
	t.Helper()
	rest := text
	for _, sentence := range story {
		at := regexp.MustCompile(`(?m)` + sentence).FindStringIndex(rest)
		require.NotNil(t, at, "%q is not told, or not in its order, in\n%s", sentence, text)
		rest = rest[at[1]:]
	}
}

var (
	ofIncident = regexp.MustCompile(` incident=[0-9a-f]{32}`)
	traceOf    = regexp.MustCompile(` trace=([0-9a-f]{32})`)
)

// traceID is the trace on every line of a log's first incident from the verdict on. What libraries say to
// themselves does not belong into a log.
func traceID(t *testing.T, log string) (id string) {
	t.Helper()
	require.NotContains(t, log, "[ERR]")
	incident := ofIncident.FindString(log)
	for line := range strings.Lines(log) {
		m := traceOf.FindStringSubmatch(line)
		switch {
		case !strings.Contains(line, incident):
		case m == nil:
			require.Empty(t, id, "no trace on %s", line)
		case id == "":
			require.Contains(t, line, " topic=verdict ", "it begins with the verdict")
			id = m[1]
		default:
			require.Equal(t, id, m[1], line)
		}
	}
	require.NotEmpty(t, id)
	return id
}

// collector takes in spans by OTLP over HTTP, on the host of the lease store.
type collector struct {
	mu    sync.Mutex
	spans []*tracepb.Span
}

// collect returns the collector, and the URL at which the hosts reach it.
func (r *rig) collect() (c *collector, url string) {
	c = &collector{}
	var l net.Listener
	var err error
	store := r.lab.Store()
	store.Do(func() { l, err = new(net.ListenConfig).Listen(r.t.Context(), "tcp", store.At(4318)) })
	require.NoError(r.t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var m collectortrace.ExportTraceServiceRequest
		body, err := io.ReadAll(q.Body)
		if err == nil && q.URL.Path == "/v1/traces" {
			err = proto.Unmarshal(body, &m)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range m.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	r.t.Cleanup(s.Close)
	return c, s.URL
}

const partition = "sbr.partition"

// trace is what was sent of one trace, in the order of members and of time.
func (c *collector) trace(id string) (members []string, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	steps := make(map[string][]*tracepb.Span)
	var roots []*tracepb.Span
	for _, s := range c.spans {
		switch {
		case hex.EncodeToString(s.GetTraceId()) != id:
		case s.GetName() == partition:
			roots = append(roots, s)
		default:
			steps[string(s.GetParentSpanId())] = append(steps[string(s.GetParentSpanId())], s)
		}
	}
	slices.SortStableFunc(roots, func(a, b *tracepb.Span) int {
		return strings.Compare(about(a, "sbr.member"), about(b, "sbr.member"))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "trace %s\n", id)
	var first uint64
	for _, root := range roots {
		if first == 0 || root.GetStartTimeUnixNano() < first {
			first = root.GetStartTimeUnixNano()
		}
	}
	line := func(name string, s *tracepb.Span, keys ...string) {
		from := time.Duration(s.GetStartTimeUnixNano() - first)
		to := time.Duration(s.GetEndTimeUnixNano() - first)
		fmt.Fprintf(&b, "%-22s %6.2fs to %6.2fs ", name, from.Seconds(), to.Seconds())
		for _, key := range keys {
			if value := about(s, key); value != "" {
				fmt.Fprintf(&b, " %s=%q", key, value)
			}
		}
		b.WriteString("\n")
	}
	for _, root := range roots {
		member := about(root, "sbr.member")
		members = append(members, member)
		line(member+"  "+partition, root,
			"sbr.outcome", "sbr.cause", "sbr.verdict.token", "sbr.side.reachable", "sbr.side.unreachable")
		own := steps[string(root.GetSpanId())]
		slices.SortFunc(own, func(a, b *tracepb.Span) int {
			return cmp.Compare(a.GetStartTimeUnixNano(), b.GetStartTimeUnixNano())
		})
		for _, s := range own {
			line("      "+s.GetName(), s,
				"sbr.outcome", "sbr.lease.token", "sbr.message", "sbr.targets", "sbr.unanswered", "sbr.down")
		}
	}
	return members, b.String()
}

// about is an attribute of a span; empty if it has none.
func about(s *tracepb.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			if v := a.GetValue(); v.GetStringValue() != "" {
				return v.GetStringValue()
			}
			return fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return ""
}

// Five hosts with the default times are cut 3|2 and healed. The log of a winner and of a loser tells the
// story, and both name its trace, which all five members share. -update writes them, and takes the pictures
// of the page, for docs/incident.md.
func TestIncident(t *testing.T) {
	t.Parallel()
	var c *collector
	o := cluster.Options{Settings: cluster.Settings{}.With("min-members", 3), RestartAfter: time.Second}
	r := newRigWith(t, besideModule, o, func(r *rig, o *cluster.Options) {
		var at string
		c, at = r.collect()
		o.Args = []string{"--log-format", "text"}
		o.Env = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + at + "/v1/traces"}
	})
	look := func(string) {}
	if *update {
		look = r.pictures(r.Member("n1"))
	}
	look("before")
	require.NoError(t, r.lab.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
	require.NoError(t, r.waitState(sbr.StateSuspended, resolveWithin))
	require.Eventually(t, func() bool {
		s, err := r.Member("n1").Status(t.Context())
		return err == nil && len(s.Unreachable) == 2
	}, resolveWithin, 20*time.Millisecond)
	look("during")
	verdict := r.waitVerdict(resolveWithin)
	require.Equal(t, []string{"n1", "n2", "n3"}, r.waitOneSide(resolveWithin))
	look("after")
	require.NoError(t, r.lab.Heal())
	r.waitWhole(rejoinWithin)

	winner, loser := r.Member(downing.NameOf(verdict.DecidedBy)), r.Member("n5")
	logOf := func(m *cluster.Member) string {
		text, err := os.ReadFile(m.SBR.Process().LogPath())
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(logOf(winner), "topic=lease-released")
	}, rejoinWithin, time.Second)
	won, lost := logOf(winner), logOf(loser)
	told(t, winnersStory, won)
	told(t, losersStory, lost)
	id := traceID(t, won)
	require.Equal(t, id, traceID(t, lost), "one incident")
	var trace string
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		var members []string
		members, trace = c.trace(id)
		// The next processes on the losers' hosts have parts in it, too.
		require.Equal(now, five, slices.Compact(members), trace)
	}, rejoinWithin, time.Second)
	t.Log(trace)
	told(t, tracesStory, trace)
	r.verify()
	if *update {
		write(t, map[string]string{"winner": won, "loser": lost, "trace": trace})
	}
}

// What docs/incident.md shows is such an incident, and so are its pictures.
func TestIncident_Page(t *testing.T) {
	text, err := os.ReadFile(docs(t, "incident.md"))
	require.NoError(t, err)
	part := make(map[string]string)
	for _, m := range parts.FindAllStringSubmatch(string(text), -1) {
		part[m[1]] = m[2]
	}
	told(t, winnersStory, part["winner"])
	told(t, losersStory, part["loser"])
	told(t, tracesStory, part["trace"])
	id := traceID(t, part["winner"])
	require.Equal(t, id, traceID(t, part["loser"]))
	require.Contains(t, part["trace"], id)
	for _, when := range []string{"before", "during", "after"} {
		for how := range screens {
			name := "img/incident-" + when + "-" + how + ".webp"
			require.Contains(t, string(text), name)
			info, err := os.Stat(docs(t, name))
			require.NoError(t, err)
			require.Greater(t, info.Size(), int64(8_000))
			require.LessOrEqual(t, info.Size(), int64(100_000))
		}
	}
}

func docs(t *testing.T, name string) string {
	t.Helper()
	root, err := buildcache.Root()
	require.NoError(t, err)
	return filepath.Join(root, "docs", name)
}

// parts are the blocks of the page that are written by the test.
var parts = regexp.MustCompile("(?s)<!-- TestIncident (\\w+) -->\n```text\n(.*?)```\n")

func write(t *testing.T, part map[string]string) {
	t.Helper()
	path := docs(t, "incident.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text = parts.ReplaceAllFunc(text, func(block []byte) []byte {
		name := string(parts.FindSubmatch(block)[1])
		return fmt.Appendf(nil, "<!-- TestIncident %s -->\n```text\n%s```\n", name, part[name])
	})
	require.NoError(t, os.WriteFile(path, text, 0o644))
}

// screens are what the page is shown on.
var screens = map[string]browser.Options{
	"light":  {Width: 1200, Height: 1100},
	"dark":   {Width: 1200, Height: 1100, Dark: true},
	"narrow": {Width: 390, Height: 1900},
}

// pictures opens the page of a member on each screen, and returns what takes its pictures.
func (r *rig) pictures(m *cluster.Member) func(when string) {
	r.t.Helper()
	// The browser is on no host: what it asks for is asked again there.
	at, err := url.Parse("http://127.0.0.1:7380")
	require.NoError(r.t, err)
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport = &http.Transport{DialContext: m.Host.DialContext}
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now()) })
		proxy.ServeHTTP(w, q)
	}))
	r.t.Cleanup(func() {
		cancel()
		s.CloseClientConnections()
		s.Close()
		proxy.Transport.(*http.Transport).CloseIdleConnections()
	})
	return func(when string) {
		for how, o := range screens {
			p := browser.Open(r.t, s.URL, o)
			p.Await(`document.getElementById("feed").dataset.is === "live"`)
			picture := p.Picture()
			require.Empty(r.t, p.Problems())
			p.Do(chromedp.Navigate("about:blank")) // it keeps a connection, and a browser opens few to one address
			require.NoError(r.t, os.WriteFile(docs(r.t, "img/incident-"+when+"-"+how+".webp"), picture, 0o644))
		}
	}
}
