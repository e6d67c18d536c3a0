package strategies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Settings are the settings of all built-in strategies, as a configuration holds them. Only those of the selected one matter.
// Start from DefaultSettings: the zero Settings keeps a lone oldest member and gives the minority no delay.
type Settings struct {
	StaticQuorum  StaticQuorum
	KeepMajority  KeepMajority
	KeepOldest    KeepOldest
	KeepReferee   KeepReferee
	LeaseMajority LeaseMajority
}

// DefaultSettings returns the reference's defaults. The quorum size and the referee's address have none and must be set.
func DefaultSettings() Settings {
	return Settings{
		KeepOldest:    KeepOldest{DownIfAlone: true},
		KeepReferee:   KeepReferee{DownAllIfLessThanNodes: 1},
		LeaseMajority: LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second},
	}
}

// ErrUnknown is returned, wrapped, by New for a key that nobody registered.
var ErrUnknown = errors.New("unknown strategy")

// Factory takes its part out of the settings. What it returns is validated if it has a method Validate() error.
type Factory func(Settings) sbr.Strategy

// Registry finds strategies by the key that a configuration uses; case does not matter. The zero Registry is empty and ready to use.
// It is not safe to Register while another goroutine uses it.
type Registry struct {
	factories map[string]Factory
}

// NewRegistry returns a registry of the built-in strategies.
func NewRegistry() Registry {
	var r Registry
	r.Register("keep-majority", func(s Settings) sbr.Strategy { return s.KeepMajority })
	r.Register("static-quorum", func(s Settings) sbr.Strategy { return s.StaticQuorum })
	r.Register("keep-oldest", func(s Settings) sbr.Strategy { return s.KeepOldest })
	r.Register("keep-referee", func(s Settings) sbr.Strategy { return s.KeepReferee })
	r.Register("down-all", func(Settings) sbr.Strategy { return DownAll{} })
	r.Register("lease-majority", func(s Settings) sbr.Strategy { return s.LeaseMajority })
	return r
}

// Register adds a strategy. It panics on an empty or taken key and on a nil factory: those are mistakes in the program.
func (r *Registry) Register(key string, factory Factory) {
	key = strings.ToLower(key)
	switch _, taken := r.factories[key]; {
	case key == "":
		panic("strategies: a strategy needs a key")
	case factory == nil:
		panic(fmt.Sprintf("strategies: %q needs a factory", key))
	case taken:
		panic(fmt.Sprintf("strategies: %q is registered twice", key))
	}
	if r.factories == nil {
		r.factories = make(map[string]Factory)
	}
	r.factories[key] = factory
}

// New returns the strategy registered under key with its part of the settings.
// Errors: ErrUnknown in one line with the known keys, or every problem of the selected strategy's settings, one line each.
func (r *Registry) New(key string, settings Settings) (sbr.Strategy, error) {
	factory, ok := r.factories[strings.ToLower(key)]
	if !ok {
		return nil, r.unknown(key)
	}
	s := factory(settings)
	if v, ok := s.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *Registry) unknown(key string) error {
	known := r.Keys()
	hint := ""
	if near := nearest(strings.ToLower(key), known); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%w %q: known are %s%s", ErrUnknown, key, strings.Join(known, ", "), hint)
}

// Keys returns the registered keys in alphabetical order.
func (r *Registry) Keys() []string { return slices.Sorted(maps.Keys(r.factories)) }

var builtin = NewRegistry()

// New returns a built-in strategy; see Registry.New.
func New(key string, settings Settings) (sbr.Strategy, error) { return builtin.New(key, settings) }

// Keys returns the keys of the built-in strategies in alphabetical order.
func Keys() []string { return builtin.Keys() }

func validRole(strategy, role string) error {
	if role != strings.TrimSpace(role) {
		return fmt.Errorf("%s.role is %q: it must not begin or end with a space", strategy, role)
	}
	return nil
}
