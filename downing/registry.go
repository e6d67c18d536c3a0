package downing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/serf/serf"
)

// The keys of the built-in downing providers.
const (
	SplitBrainResolver = "split-brain-resolver"
	NoDowning          = "none"
)

// ErrUnknownProvider is wrapped by the error of New when Config.Provider names no registered provider.
var ErrUnknownProvider = errors.New("downing: unknown downing provider")

// Engine is the working part of a downing provider. Its methods are called in the order Prepare, Start, Stop.
type Engine interface {
	// Prepare changes the configuration of a node that does not exist yet.
	Prepare(ctx context.Context, conf *serf.Config) error
	// Start begins to watch the node.
	Start(ctx context.Context, s *serf.Serf) error
	// Stop ends watching and waits until nothing runs any more. The node stays as it is.
	Stop(ctx context.Context) error
	// Status tells what the engine sees. It is safe for concurrent use.
	Status() Status
}

// Factory makes the engine of one member. It reports its fate through life.
type Factory func(cfg Config, life *Lifecycle) (Engine, error)

var registry = struct {
	sync.RWMutex
	factories map[string]Factory
}{factories: map[string]Factory{
	SplitBrainResolver: newResolverEngine,
	NoDowning:          func(Config, *Lifecycle) (Engine, error) { return inert{}, nil },
}}

// Register makes a downing provider known under a key. It panics on an empty key, a nil factory and a key that is taken:
// all three are programming errors. It is meant for init functions.
func Register(key string, f Factory) {
	registry.Lock()
	defer registry.Unlock()
	if key == "" || f == nil {
		panic("downing: Register needs a key and a factory")
	}
	if _, taken := registry.factories[key]; taken {
		panic("downing: provider " + key + " is registered twice")
	}
	registry.factories[key] = f
}

// Providers lists the registered keys, sorted.
func Providers() []string {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Sorted(maps.Keys(registry.factories))
}

func lookUp(key string) (Factory, error) {
	registry.RLock()
	defer registry.RUnlock()
	f, ok := registry.factories[key]
	if !ok {
		return nil, fmt.Errorf("%w %q: known are %s", ErrUnknownProvider, key, strings.Join(slices.Sorted(maps.Keys(registry.factories)), ", "))
	}
	return f, nil
}

// inert is the provider "none": it downs nobody.
type inert struct{}

func (inert) Prepare(context.Context, *serf.Config) error { return nil }
func (inert) Start(context.Context, *serf.Serf) error     { return nil }
func (inert) Beside(context.Context, Agent, Prober) error { return nil }
func (inert) Stop(context.Context) error                  { return nil }
func (inert) Status() Status                              { return Status{State: "none"} }
