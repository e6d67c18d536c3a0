package kubernetes_test

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// strikes is what the hook did to A's requests.
type strikes struct {
	mu       sync.Mutex
	armed    bool
	healed   bool
	count    int
	at       time.Time
	flag     bool
	reads    int // that A sent after the first strike
	answers  []int
	first    chan struct{} // closed at the first strike
	answered chan struct{} // closed when the API server has answered the first one
}

func newStrikes() *strikes {
	return &strikes{first: make(chan struct{}), answered: make(chan struct{})}
}

// seen returns what the API server has answered to requests that were struck, and how often A has read since the first.
func (h *strikes) seen() (answers []int, reads int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.answers), h.reads
}

// arm makes the fault strike the next request of the step's kind, and further ones as its reach says.
func (c *cell) arm() {
	c.hit.mu.Lock()
	c.hit.armed = true
	c.hit.mu.Unlock()
	c.proxy.ResetCounts()
	c.proxy.SetFault(c.hook)
}

func (c *cell) hook(r *http.Request) kubetest.Fault {
	h, verb := c.hit, kubetest.Verb(r)
	h.mu.Lock()
	if h.count > 0 && verb == http.MethodGet {
		h.reads++
	}
	if !h.armed || h.healed || !c.reaches(h.count, verb) {
		h.mu.Unlock()
		return c.prompt()
	}
	h.count++
	first := h.count == 1
	if first {
		h.at, h.flag = time.Now(), c.a.Check()
	}
	h.mu.Unlock()
	began := time.Now()
	f := c.fault.strike(c, verb)
	if c.fault.disaster == nil && time.Since(began) > faultRequestTimeout/2 {
		c.spoiled.Store(true)
	}
	if first {
		close(h.first)
	}
	f.Answered = func(status int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answers = append(h.answers, status)
		if first {
			close(h.answered)
		}
	}
	return f
}

// prompt passes a request on that is not struck. If it is not answered soon the machine is at fault, and the cell is spoiled.
func (c *cell) prompt() kubetest.Fault {
	if c.fault.disaster != nil {
		return kubetest.Fault{}
	}
	late := time.AfterFunc(faultRequestTimeout/2, func() { c.spoiled.Store(true) })
	return kubetest.Fault{Answered: func(int) { late.Stop() }}
}

// heal ends the fault.
func (c *cell) heal() {
	c.hit.mu.Lock()
	before := c.hit.healed
	c.hit.healed = true
	c.hit.mu.Unlock()
	if before {
		return
	}
	c.proxy.SetFault(nil)
	if c.fault.after != nil {
		c.fault.after(c)
	}
}

// struck waits for the first strike and returns when it was: a cell whose fault never struck proves nothing.
func (c *cell) struck() time.Time {
	select {
	case <-c.hit.first:
	case <-c.ctx.Done():
		require.FailNow(c, "the fault never struck")
	case <-time.After(faultSlack):
		require.FailNow(c, "the fault never struck")
	}
	return c.hit.at
}
