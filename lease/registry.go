package lease

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Spec says which record a Factory is to open.
type Spec struct {
	// System is the name of the cluster, Name that of the lease, unsanitised: a backend makes of it what it can store.
	System, Name string
	// Owner is who will use the store: for backends that identify themselves to a server.
	Owner string
	// Settings are the times of the lease, for a backend that bounds its requests. Zero: the backend's own defaults.
	Settings Settings
	// Logger is told what a backend notices by itself. Nil: the one of its Factory.
	Logger *slog.Logger
	// Decode fills a backend's own configuration struct from wherever it is kept (`yaml.Node.Decode` fits).
	// Nil: there is none, the backend's defaults apply.
	Decode func(into any) error
}

// Configure fills into by Decode, and leaves it as it is without one.
func (s Spec) Configure(into any) error {
	if s.Decode == nil {
		return nil
	}
	return s.Decode(into)
}

// Factory opens the store of one lease. It should find wrong configuration, and need not reach the store.
type Factory func(ctx context.Context, spec Spec) (Store, error)

// Registry finds implementations by their configuration key. It is safe for concurrent use.
type Registry struct {
	mu        sync.RWMutex
	factories map[string]Factory
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{factories: map[string]Factory{}} }

// Default is the registry of the package functions Register and Open.
var Default = NewRegistry()

// Register makes an implementation known in the default registry. Call it from init or main.
func Register(key string, f Factory) { Default.Register(key, f) }

// Open opens a store by the default registry.
func Open(ctx context.Context, key string, spec Spec) (Store, error) {
	return Default.Open(ctx, key, spec)
}

// Register makes an implementation known. It panics on an empty or used key and on a nil factory: these are programming errors.
func (r *Registry) Register(key string, f Factory) {
	if strings.TrimSpace(key) == "" || f == nil {
		panic(fmt.Sprintf("lease: Register(%q): a key and a factory are required", key))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used := r.factories[key]; used {
		panic(fmt.Sprintf("lease: Register(%q): the key is in use", key))
	}
	r.factories[key] = f
}

// Keys returns the known keys, sorted.
func (r *Registry) Keys() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.factories))
}

// Open opens a store. An unknown or empty key is an error that wraps ErrUnknownImplementation and lists the known ones.
func (r *Registry) Open(ctx context.Context, key string, spec Spec) (Store, error) {
	r.mu.RLock()
	f := r.factories[key]
	r.mu.RUnlock()
	if f == nil {
		known := strings.Join(r.Keys(), ", ")
		if known == "" {
			known = "none"
		}
		return nil, fmt.Errorf("%w %q (known: %s)", ErrUnknownImplementation, key, known)
	}
	s, err := f(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("lease: %s: %w", key, err)
	}
	return s, nil
}
