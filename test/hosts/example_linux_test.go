package hosts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sharding"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const (
	// exampleShards is how many shards examples/shards has.
	exampleShards = 64
	// requestEvery makes 200 requests a second.
	requestEvery = 5 * time.Millisecond
	// loadFor is how long requests are sent before and after something happens.
	loadFor = 3 * time.Second
	// stopsWithin bounds the stop of the whole service.
	stopsWithin = 10 * time.Second
)

// service is examples/shards on hosts of its own.
type service struct {
	t       *testing.T
	lab     *lab.Lab
	program string
	lease   string // the hosts share the disk: all reach it
	running map[string]*process.Process
}

func newService(t *testing.T, hosts ...string) *service {
	t.Helper()
	s := &service{t: t, lab: newHosts(t, append(hosts, "load")...), running: make(map[string]*process.Process)}
	s.program, s.lease = filepath.Join(t.TempDir(), "shards"), filepath.Join(s.lab.Dir(), "counters.lease")
	root, err := buildcache.Root()
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "./examples/shards")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, name := range hosts {
		s.start(name)
	}
	return s
}

// start starts a member, which joins the running ones.
func (s *service) start(name string) {
	s.t.Helper()
	h := s.lab.Host(name)
	args := []string{
		"-name", name, "-bind", h.At(7946), "-front", h.At(8081), "-back", h.At(8082), "-lease", s.lease,
		"-stable-after", "4s", "-linger", "500ms",
	}
	var join []string
	for other := range s.running {
		join = append(join, s.lab.Host(other).At(7946))
	}
	if len(join) > 0 {
		args = append(args, "-join", strings.Join(join, ","))
	}
	p, err := h.Start(process.Command{Name: "shards", Program: s.program, Args: args})
	require.NoError(s.t, err)
	s.running[name] = p
	// A member that joins while another starts finds nobody there.
	require.Eventually(s.t, func() bool {
		_, err := s.table(name)
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

// stop asks members to leave, all at once, and returns how long the last one took.
func (s *service) stop(names ...string) time.Duration {
	s.t.Helper()
	began := time.Now()
	for _, name := range names {
		require.NoError(s.t, s.running[name].Signal(syscall.SIGTERM))
	}
	for _, name := range names {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
		exit, err := s.running[name].Wait(ctx)
		cancel()
		require.NoError(s.t, err)
		assert.Zero(s.t, exit.Code, "%s: %s", name, exit.Text)
		s.t.Logf("%s has left after %v", name, exit.At.Sub(began).Round(time.Millisecond))
		delete(s.running, name)
	}
	return time.Since(began)
}

// table is what a member knows of the shards.
func (s *service) table(name string) (sharding.Table, error) {
	url := "http://" + s.lab.Host(name).At(8081) + "/shards"
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return sharding.Table{}, err
	}
	response, err := s.lab.Host("load").Client().Do(request)
	if err != nil {
		return sharding.Table{}, err
	}
	defer response.Body.Close()
	var tables []sharding.Table
	if err := json.NewDecoder(response.Body).Decode(&tables); err != nil {
		return sharding.Table{}, err
	}
	return tables[0], nil
}

// settled returns the owner of each shard, once every member knows that all of them run, evenly spread.
func (s *service) settled() (owner map[string]string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for name := range s.running {
			table, err := s.table(name)
			if err != nil {
				return false
			}
			owner = make(map[string]string)
			on := make(map[string]int)
			for _, row := range table.Shards {
				if row.State != sharding.Running {
					return false
				}
				owner[row.Shard] = row.Name
				on[row.Name]++
			}
			for member := range s.running {
				if on[member] < exampleShards/len(s.running)*3/4 {
					return false
				}
			}
			if len(owner) != exampleShards || len(on) != len(s.running) {
				return false
			}
		}
		return true
	}, settlesWithin, 50*time.Millisecond)
	return owner
}

// answer is one request, and what became of it.
type answer struct {
	shard, problem string
	count          int
	sent           time.Time
	took           time.Duration
}

// load is requests from a host of their own.
type load struct {
	client *http.Client
	fronts atomic.Pointer[[]string] // where a load balancer would send them
	done   chan struct{}
	work   sync.WaitGroup
	mu     sync.Mutex
	all    []answer
}

// load sends 200 requests a second, each whether or not those before are answered.
func (s *service) load(names ...string) *load {
	transport := &http.Transport{DialContext: s.lab.Host("load").DialContext, MaxIdleConnsPerHost: 1000}
	l := &load{client: &http.Client{Transport: transport, Timeout: time.Minute}, done: make(chan struct{})}
	s.balance(l, names...)
	l.work.Go(func() {
		tick := time.NewTicker(requestEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-l.done:
				return
			case <-tick.C:
				l.work.Go(func() { l.send(n) })
			}
		}
	})
	return l
}

// balance says which members get requests from now on.
func (s *service) balance(l *load, names ...string) {
	var fronts []string
	for _, name := range names {
		fronts = append(fronts, "http://"+s.lab.Host(name).At(8081)+"/count/")
	}
	l.fronts.Store(&fronts)
}

func (l *load) send(n int) {
	key, fronts := fmt.Sprintf("key-%d", n), *l.fronts.Load()
	a := answer{shard: sharding.ShardOf(key, exampleShards), sent: time.Now()}
	response, err := l.client.Post(fronts[n%len(fronts)]+key, "", nil)
	if err == nil {
		var body []byte
		body, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && response.StatusCode == http.StatusOK {
			a.count, err = strconv.Atoi(strings.TrimSpace(string(body)))
		} else if err == nil {
			err = fmt.Errorf("%s %s", response.Status, body)
		}
	}
	if err != nil {
		a.problem = err.Error()
	}
	a.took = time.Since(a.sent)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, a)
}

// end waits for the last answer.
func (l *load) end() (all, failed []answer) {
	close(l.done)
	l.work.Wait()
	l.client.CloseIdleConnections()
	for _, a := range l.all {
		if a.problem != "" {
			failed = append(failed, a)
		}
	}
	return l.all, failed
}

// slowest is the answer that took longest.
func slowest(all []answer) time.Duration {
	last := slices.MaxFunc(all, func(a, b answer) int { return int(a.took - b.took) })
	return last.took.Round(time.Millisecond)
}

// 64 shards on three hosts get 200 requests a second from a fourth host. A member that stops as planned and
// comes back costs no request, a killed member only requests for its own shards, and the whole service stops
// at once.
func TestExample_ShardsUnderLoad(t *testing.T) {
	needsRoot(t)
	s := newService(t, "n1", "n2", "n3")
	owner := s.settled()

	// The oldest one stops: it is the coordinator's member, too.
	l := s.load("n1", "n2", "n3")
	time.Sleep(loadFor)
	s.balance(l, "n2", "n3")
	t.Logf("n1 stops: it has %d shards", count(owner, "n1"))
	s.stop("n1")
	require.Zero(t, count(s.settled(), "n1"))
	s.start("n1")
	owner = s.settled()
	t.Logf("n1 is back: it has %d shards", count(owner, "n1"))
	s.balance(l, "n1", "n2", "n3")
	time.Sleep(loadFor)
	all, failed := l.end()
	t.Logf("planned: %d requests, %d failed, the slowest took %v", len(all), len(failed), slowest(all))
	require.Empty(t, failed)
	each := make(map[string][]int)
	for _, a := range all {
		each[a.shard] = append(each[a.shard], a.count)
	}
	for shard, counts := range each { // no count is lost, and none is given twice
		slices.Sort(counts)
		require.Equal(t, 1, counts[0], shard)
		require.Equal(t, len(counts), counts[len(counts)-1], shard)
		require.Len(t, slices.Compact(counts), len(each[shard]), shard)
	}

	// What clients send to the killed member itself is their load balancer's business: they use the others.
	l = s.load("n1", "n3")
	time.Sleep(loadFor)
	killed := time.Now()
	s.running["n2"].Kill()
	delete(s.running, "n2")
	s.settled()
	again := time.Now()
	time.Sleep(loadFor)
	all, failed = l.end()
	t.Logf("killed: its %d shards run again after %v", count(owner, "n2"), again.Sub(killed))
	own, others := 0, 0
	for _, a := range all {
		switch {
		case a.took <= time.Second:
		case owner[a.shard] == "n2":
			own++
		default:
			others++
		}
	}
	t.Logf("killed: %d requests, %d failed, the slowest took %v; over a second %d for its shards, %d others",
		len(all), len(failed), slowest(all), own, others)
	for _, a := range failed {
		t.Logf("failed, sent %v after the kill: shard %s: %s", a.sent.Sub(killed), a.shard, a.problem)
		require.Equal(t, "n2", owner[a.shard], "its shards only")
		require.True(t, a.sent.Before(again), "and only until they run again")
	}

	s.start("n2")
	s.settled()
	took := s.stop("n1", "n2", "n3")
	t.Logf("the whole service has stopped after %v", took.Round(time.Millisecond))
	require.LessOrEqual(t, took, stopsWithin)
}

// count is how many shards a member has.
func count(owner map[string]string, member string) (n int) {
	for _, name := range owner {
		if name == member {
			n++
		}
	}
	return n
}
