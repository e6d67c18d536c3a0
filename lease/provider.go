package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ProviderConfig says how a Provider opens leases.
type ProviderConfig struct {
	// Registry finds implementations. Nil: Default.
	Registry *Registry
	// System is the name of the cluster.
	System string
	// Settings are for every implementation; each of their zero fields is taken from DefaultSettings.
	Settings Settings
	// Implementations holds what is special to an implementation, by key. A key that is missing here is not special.
	Implementations map[string]Implementation
	// Options are passed to each lease.
	Options Options
}

// Implementation is what is special to one implementation.
type Implementation struct {
	// Settings override those of the ProviderConfig, field by field.
	Settings Settings
	// Decode fills the implementation's own configuration (see Spec).
	Decode func(into any) error
}

// Provider hands out leases. The same name, key and owner always give the same instance, so that two parts of a program
// which ask for one lease do not fight over it. It is safe for concurrent use.
type Provider struct {
	cfg ProviderConfig

	mu     sync.Mutex
	leases map[leaseKey]*leaseEntry
	closed bool
}

type leaseKey struct{ name, key, owner string }

type leaseEntry struct {
	ready chan struct{}
	lease *Lease
	store Store
	err   error
}

// NewProvider returns a provider without leases.
func NewProvider(cfg ProviderConfig) *Provider {
	if cfg.Registry == nil {
		cfg.Registry = Default
	}
	return &Provider{cfg: cfg, leases: map[leaseKey]*leaseEntry{}}
}

// Lease returns the lease called name of the implementation key for owner. An error is not remembered: ask again.
func (p *Provider) Lease(ctx context.Context, name, key, owner string) (*Lease, error) {
	id := leaseKey{name, key, owner}
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, fmt.Errorf("provider: %w", ErrClosed)
		}
		e, mine := p.leases[id], false
		if e == nil {
			e, mine = &leaseEntry{ready: make(chan struct{})}, true
			p.leases[id] = e
		}
		p.mu.Unlock()
		if mine {
			p.open(ctx, id, e)
			return e.lease, e.err
		}
		select {
		case <-e.ready:
			if e.err == nil {
				return e.lease, nil
			}
			// The one who opened it failed, perhaps because its ctx ended: try with this one.
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// open fills e, or takes it out again.
func (p *Provider) open(ctx context.Context, id leaseKey, e *leaseEntry) {
	defer close(e.ready)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if e.err == nil && p.closed {
			e.err = fmt.Errorf("provider: %w", ErrClosed)
		}
		if e.err != nil {
			delete(p.leases, id)
			_ = e.close()
		}
	}()
	e.err = errors.New("lease: the factory panicked") // until it returns
	impl := p.cfg.Implementations[id.key]
	settings := impl.Settings.Or(p.cfg.Settings).Or(DefaultSettings())
	e.store, e.err = p.cfg.Registry.Open(ctx, id.key, Spec{
		System: p.cfg.System, Name: id.name, Owner: id.owner, Settings: settings, Logger: p.cfg.Options.Logger, Decode: impl.Decode,
	})
	if e.err == nil {
		o := p.cfg.Options
		if o.Use == "" {
			o.Use = "the lease " + id.name
		}
		e.lease, e.err = New(e.store, id.owner, settings, o)
	}
}

func (e *leaseEntry) close() error {
	if e.lease != nil {
		e.lease.Close()
	}
	if c, ok := e.store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Close closes every lease, and every store that has a Close method. It releases nothing.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	leases := p.leases
	p.leases = map[leaseKey]*leaseEntry{}
	p.mu.Unlock()
	var errs []error
	for _, e := range leases {
		<-e.ready
		if e.err == nil {
			errs = append(errs, e.close())
		}
	}
	return errors.Join(errs...)
}
