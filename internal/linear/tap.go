package linear

import (
	"context"
	"errors"

	"github.com/serf-sbr/serf-sbr/lease"
)

// tap is a client's connection to the store. It notes what was sent, never what became of it.
type tap struct {
	lease.Store
	client *Client
}

type inOperation struct{}

// Write implements lease.Store.
func (t tap) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	t.client.sends(r, ctx.Value(inOperation{}) != nil)
	return t.Store.Write(ctx, r, prev)
}

// Watch implements lease.Watcher.
func (t tap) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	w, ok := t.Store.(lease.Watcher)
	if !ok {
		return errors.ErrUnsupported
	}
	return w.Watch(ctx, fn)
}

// sends is called before a write leaves. One without a holder frees the grant of its nonce; what is not part
// of an operation is the lease's own tidying up.
func (c *Client) sends(r lease.Record, inOperation bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Holder != "" {
		c.sent[r.Nonce] = true
		return
	}
	if inOperation {
		c.freeing[r.Nonce] = true
	} else if !c.tidied[r.Nonce] {
		c.tidied[r.Nonce] = true
		c.history.pending(c.index, input{action: lateFree, who: c.owner, nonce: r.Nonce}, c.history.now())
	}
}
