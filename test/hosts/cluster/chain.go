//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
)

// Entry is one state of the lease that differs from the one before in who holds it or in the verdict.
type Entry struct {
	// Seen is when it was heard of; Written is when the holder says that it was acquired, zero for a free lease.
	Seen, Written time.Time
	Holder        string
	Token         uint64
	Verdict       *sbr.Verdict
}

// Chain is every state of the lease, in order, heard of from the API server while it is there.
type Chain struct {
	client *http.Client
	url    string
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	entries []Entry
}

// follow watches as administrator, on the lease store's own host: no cut is between.
func follow(l *lab.Lab, api *kubetest.Cluster, namespace string) (*Chain, error) {
	config, err := clientcmd.BuildConfigFromFlags("", api.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	config.Dial = l.Store().DialContext
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Chain{
		client: client, stop: cancel, done: make(chan struct{}),
		url: api.URL() + "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases?watch=true&fieldSelector=metadata.name%3D" + leaseName,
	}
	go c.run(ctx)
	return c, nil
}

// end stops watching.
func (c *Chain) end() {
	c.stop()
	<-c.done
	c.client.CloseIdleConnections()
}

func (c *Chain) run(ctx context.Context) {
	defer close(c.done)
	version := ""
	for ctx.Err() == nil {
		var err error
		if version, err = c.listen(ctx, version); errors.Is(err, errExpired) {
			version = "" // from what there is now: a verdict that was missed leaves a gap in the tokens, which verifyChain finds
		}
		timer := time.NewTimer(pollEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// errExpired is what a watch ends with that asks for a past which the API server has forgotten.
var errExpired = errors.New("cluster: the past is forgotten")

// listen takes in what one watch tells and returns from where the next has to go on.
func (c *Chain) listen(ctx context.Context, version string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"&resourceVersion="+version, nil)
	if err != nil {
		return version, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone {
		return version, errExpired
	}
	for events := json.NewDecoder(response.Body); ; {
		var event struct {
			Type   watch.EventType
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			return version, err
		}
		switch event.Type {
		case watch.Added, watch.Modified:
			var o coordinationv1.Lease
			if err := json.Unmarshal(event.Object, &o); err != nil {
				return version, err
			}
			version = o.ResourceVersion
			if err := c.take(&o); err != nil {
				return version, err
			}
		default: // an error: what has been asked for cannot be had
			return version, errExpired
		}
	}
}

func (c *Chain) take(o *coordinationv1.Lease) error {
	text, ok := o.Annotations[kubernetes.Annotation]
	if !ok {
		return nil // the object was made, nothing was written yet
	}
	var record struct {
		Token   uint64       `json:"token"`
		Holder  string       `json:"holder"`
		Verdict *sbr.Verdict `json:"verdict"`
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return fmt.Errorf("cluster: annotation of the lease: %w", err)
	}
	e := Entry{Seen: time.Now(), Holder: record.Holder, Token: record.Token, Verdict: record.Verdict}
	if o.Spec.AcquireTime != nil && e.Holder != "" {
		e.Written = o.Spec.AcquireTime.Time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.entries); n == 0 || c.entries[n-1].Token != e.Token || c.entries[n-1].Holder != e.Holder {
		c.entries = append(c.entries, e)
	}
	return nil
}

// Entries are the states so far.
func (c *Chain) Entries() []Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.entries)
}

// Verdicts are the entries that brought a new verdict.
func (c *Chain) Verdicts() []Entry {
	var all []Entry
	for _, e := range c.Entries() {
		if e.Verdict != nil && (len(all) == 0 || all[len(all)-1].Token != e.Token) {
			all = append(all, e)
		}
	}
	return all
}

// Verify checks what must hold of every chain: tokens grow by one, nobody comes in under a token that another holds, a verdict downs
// somebody, and who was downed neither writes nor survives later.
func (c *Chain) Verify() error { return verifyChain(c.Entries()) }

func verifyChain(entries []Entry) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("verdict chain: "+format, args...)) }
	downed := make(map[sbr.ID]uint64)
	last := Entry{}
	for _, e := range entries {
		switch {
		case e.Token == last.Token:
			if e.Holder != "" && last.Holder != "" && e.Holder != last.Holder {
				fail("%s became the holder under the token %d of %s", e.Holder, e.Token, last.Holder)
			}
		case e.Token != last.Token+1:
			fail("from token %d to %d", last.Token, e.Token)
		}
		if by, out := downed[sbr.ID(e.Holder)]; out {
			fail("%s holds the lease under token %d although verdict %d downed it", e.Holder, e.Token, by)
		}
		if v := e.Verdict; v != nil && v.Token == e.Token && e.Token != last.Token {
			if len(v.Down) == 0 {
				fail("verdict %d downs nobody", v.Token)
			}
			for _, id := range v.Survivors {
				if by, out := downed[id]; out {
					fail("verdict %d keeps %s, which verdict %d downed", v.Token, id, by)
				}
			}
			for _, id := range v.Down {
				if _, before := downed[id]; !before {
					downed[id] = v.Token
				}
			}
		}
		last = e
	}
	return errors.Join(errs...)
}
