package clustertest

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/downing"
)

func (c *Cluster) observe(o downing.Occurrence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, o)
}

// Occurred is what has happened to a member so far, in order; without a name, to all of them.
func (c *Cluster) Occurred(name string) []downing.Occurrence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.log), func(o downing.Occurrence) bool { return name != "" && o.Member != name })
}

func (c *Cluster) dump() {
	c.t.Helper()
	for _, o := range c.Occurred("") {
		c.t.Logf("%s %-4s %-22s %s", o.At.Format("04:05.000"), o.Member, o.Kind, o.Text)
	}
}
