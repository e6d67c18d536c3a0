package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Limits bound what one run costs. Every member of a run is a real one: more than maxNodes, for which a cut
// takes about a minute and two gigabytes, are refused, and not played in part.
const (
	maxNodes = 1000
	maxSteps = 10_000
	maxTime  = 1000 * time.Hour
	// minLeaseTime keeps a run from drowning in heartbeats and retries.
	minLeaseTime = 10 * time.Millisecond
)

// none is the lease-holder when the lease is free.
const none = "none"

// checker collects problems.
type checker struct {
	strictyaml.Problems
	s     *Scenario
	names *Names
}

// problems reports everything that is wrong.
func (s *Scenario) problems() strictyaml.Problems {
	c := checker{s: s}
	if c.sizes(); len(c.Problems) > 0 {
		return c.Problems // nothing of that size is looked at any closer
	}
	c.names = s.Names()
	c.cluster()
	c.span("run-for", s.RunFor, true)
	for i := range s.Steps {
		c.step(fmt.Sprintf("steps[%d]", i), &s.Steps[i])
	}
	c.joins()
	c.expect(&s.Expect)
	if len(c.Problems) == 0 {
		c.world()
	}
	return c.Problems
}

func (c *checker) sizes() {
	nodes, joins := c.s.Cluster.Nodes.Count, 0
	if list := c.s.Cluster.Nodes.List; list != nil {
		nodes = len(list)
	}
	for i := range c.s.Steps {
		if c.s.Steps[i].Join != nil {
			joins++
		}
	}
	switch {
	case nodes < 1 || nodes > maxNodes:
		c.Add("cluster.nodes", "are %d: it must be 1 to %d: each is a real one", nodes, maxNodes)
	case nodes+joins > maxNodes:
		c.Add("cluster.nodes", "are %d, and %d more join: at most %d in all", nodes, joins, maxNodes)
	}
	if n := len(c.s.Steps); n > maxSteps {
		c.Add("steps", "are %d: at most %d are played", n, maxSteps)
	}
}

func (c *checker) cluster() {
	cl := &c.s.Cluster
	c.nodes()
	c.Problems = append(c.Problems, cl.SplitBrainResolver.Problems("cluster.split-brain-resolver")...)
	c.Problems = append(c.Problems, cl.Lease.Problems("cluster.lease")...)
	times := c.s.lease()
	for key, d := range map[string]time.Duration{"heartbeat-interval": times.Interval(),
		"lease-operation-timeout": times.OperationTimeout} {
		if d > 0 && d < minLeaseTime {
			c.Add("cluster.lease."+key, "is %v: the simulator plays nothing below %v", d, minLeaseTime)
		}
	}
	if d := &cl.Detection; d.Profile != "" {
		c.OneOf("cluster.detection", d.Profile, profiles())
	} else {
		c.span("cluster.detection.after", d.Times.After, false)
		c.span("cluster.detection.spread", d.Times.Spread, false)
		c.span("cluster.detection.heal", d.Times.Heal, false)
	}
	c.network()
	c.span("cluster.reap-after", cl.ReapAfter, true)
	c.settings()
	c.singletons()
	c.shards()
}

// network checks what holds for every link that no step changes.
func (c *checker) network() {
	n := &c.s.Cluster.Network
	c.span("cluster.network.latency", n.Latency, false)
	c.span("cluster.network.jitter", n.Jitter, false)
	c.share("cluster.network.loss", n.Loss)
}

// share checks a share of the whole.
func (c *checker) share(path string, x float64) {
	if !(x >= 0 && x <= 1) { // also when it is not a number
		c.Add(path, "is %v: it must be a number from 0 to 1", x)
	}
}

// nodes checks names. A zone must not be called like a node: where nodes are listed it stands for all in it.
func (c *checker) nodes() {
	first := make(map[string]int)
	for i, node := range c.names.Nodes[:c.names.Start] {
		at := fmt.Sprintf("cluster.nodes[%d]", i)
		c.name(at+".name", node.Name)
		if j, twice := first[node.Name]; twice {
			c.Add(at+".name", "%q is already the name of cluster.nodes[%d]", node.Name, j)
		} else {
			first[node.Name] = i
		}
		if node.Zone != "" {
			c.name(at+".zone", node.Zone)
		}
		if _, taken := c.names.Index[node.Zone]; taken && node.Zone != "" {
			c.Add(at+".zone", "%q is the name of a member", node.Zone)
		}
	}
}

// name checks what a member may be called: what Serf takes, so that the same file can be played over it.
func (c *checker) name(path, name string) {
	const limit = 128
	ok := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("-._", r)
	}
	switch {
	case name == "":
		c.Add(path, "is empty")
	case name == none:
		c.Add(path, "is %q, which stands for nobody", name)
	case len(name) > limit || strings.ContainsFunc(name, func(r rune) bool { return !ok(r) }):
		c.Add(path, "is %.40q: it must be letters, digits, - . _ and at most %d of them", name, limit)
	}
}

// member checks that a single name is that of a member.
func (c *checker) member(path, name string) {
	if err := c.names.unknown(name, false); err != nil {
		c.Add(path, "%v", err)
	}
}

// span checks a time that must not be negative, or with positive, must be more than zero.
func (c *checker) span(path string, d time.Duration, positive bool) {
	switch {
	case positive && d == 0:
		c.Add(path, "is not set, or 0s: it must be more than 0s")
	case d < 0:
		c.Add(path, "is %v: it must not be negative", d)
	case d > maxTime:
		c.Add(path, "is %v: it must be at most %v", d, maxTime)
	}
}

// validRate reports whether f is a rate that a clock may run at.
func validRate(f float64) bool { return !math.IsNaN(f) && f >= 0.01 && f <= 100 }

// lease are the times of the lease in effect.
func (s *Scenario) lease() lease.Settings {
	return s.Cluster.Lease.Settings(s.Cluster.SplitBrainResolver.LeaseMajority.LeaseImplementation)
}

// world lets the simulator have the last word: it refuses settings that contradict each other.
func (c *checker) world() {
	o, err := c.s.options()
	if err == nil {
		first := o.Members[0]
		o.Members = append(slices.DeleteFunc(o.Members, func(n world.NodeOptions) bool { return n.Own == nil }),
			first)
		_, err = world.New(o)
	}
	if err != nil {
		c.Add("cluster", "%s", strings.Join(strings.Fields(err.Error()), " "))
	}
}

// kinds are the names of the decisions.
func kinds() (all []string) {
	for k := sbr.None; k <= sbr.AcquireLeaseAndDownIndirectlyConnected; k++ {
		all = append(all, k.String())
	}
	return all
}
