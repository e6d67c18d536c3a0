package lease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/serf-sbr/serf-sbr/internal/shared"
)

// Spec says which record a Factory is to open.
type Spec struct {
	// System is the name of the cluster, Name that of the lease, unsanitised: a backend makes of it what it
	// can store. Open makes an empty Name "<system>-sbr".
	System, Name string
	// Owner will use the store: for backends that identify themselves to a server.
	Owner string
	// Settings are the times of the lease, for a backend that bounds its requests. Open fills in the
	// OperationTimeout.
	Settings Settings
	// Logger gets what a backend notices by itself. Nil: the one of its Factory.
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

// Factory opens the store of one lease. It should find wrong configuration, and need not reach the store. Its
// errors say of which kind of store they are.
type Factory func(ctx context.Context, spec Spec) (Store, error)

// registered has the Factory of each configuration key of this process.
var registered sync.Map

// Register makes an implementation known. Call it from init or main. It panics on an empty or used key and on
// a nil factory: these are programming errors.
func Register(key string, f Factory) {
	if strings.TrimSpace(key) == "" || f == nil {
		panic(fmt.Sprintf("lease: Register(%q): a key and a factory are required", key))
	}
	if _, used := registered.LoadOrStore(key, f); used {
		panic(fmt.Sprintf("lease: Register(%q): the key is in use", key))
	}
}

// Implementations returns the keys that are registered, sorted.
func Implementations() (keys []string) {
	for key := range registered.Range {
		keys = append(keys, key.(string))
	}
	slices.Sort(keys)
	return keys
}

// Open opens a store. An unknown or empty key is an error that wraps ErrUnknownImplementation and lists the
// known ones.
func Open(ctx context.Context, key string, spec Spec) (Store, error) {
	known, ok := registered.Load(key)
	if !ok {
		all := cmp.Or(strings.Join(Implementations(), ", "), "none")
		return nil, fmt.Errorf("%w %q (known: %s)", ErrUnknownImplementation, key, all)
	}
	spec.Name = cmp.Or(spec.Name, spec.System+"-sbr")
	spec.Settings.OperationTimeout = cmp.Or(spec.Settings.OperationTimeout, DefaultSettings().OperationTimeout)
	s, err := known.(Factory)(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("lease: %w", err)
	}
	return s, nil
}

// uses are the records that the open leases of this process use, by location, and what for. It is the whole
// process that must agree: the uses come from packages that know nothing of each other.
var uses shared.Values[any, string]

// claim notes that a lease uses a record, unless it serves another use already. end takes that back.
func claim(s Store, what string) (end func(), err error) {
	where, ok := location(s)
	if what == "" || !ok {
		return func() {}, nil
	}
	first, end, _ := uses.Use(where, func() (string, error) { return what, nil }, func(string) {})
	if first != what {
		end()
		return nil,
			fmt.Errorf("%w: %v is that of %s, and cannot be that of %s as well: give each a record of its own "+
				"(another lease name; a folder as lease.file.path)", ErrInUse, where, first, what)
	}
	return end, nil
}

// location is where a store keeps its record, or the store itself where it does not say.
func location(s Store) (where any, ok bool) {
	if l, located := s.(Located); located {
		return l.Location(), true
	}
	return s, reflect.ValueOf(s).Comparable()
}
