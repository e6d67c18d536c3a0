package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

var errNoNamespace = errors.New("no such namespace")

func init() {
	lease.Register("memory", memory.Factory())
	lease.Register("broken", func(_ context.Context, s lease.Spec) (lease.Store, error) {
		return nil, fmt.Errorf("broken: %s within %s: %w", s.Name, s.Settings.OperationTimeout, errNoNamespace)
	})
}

func TestOpen(t *testing.T) {
	for _, key := range []string{"", "kubernets"} {
		_, err := lease.Open(t.Context(), key, lease.Spec{})
		require.ErrorIs(t, err, lease.ErrUnknownImplementation)
		assert.ErrorContains(t, err, `lease: unknown implementation "`+key+`" (known: broken, `)
	}
	_, err := lease.Open(t.Context(), "broken", lease.Spec{System: "payments"})
	require.ErrorIs(t, err, errNoNamespace)
	assert.EqualError(t, err, "lease: broken: payments-sbr within 5s: no such namespace")
	assert.ErrorIs(t, lease.Spec{Decode: func(any) error { return errNoNamespace }}.Configure(nil),
		errNoNamespace)
}

func TestRegister_MisusePanics(t *testing.T) {
	assert.Panics(t, func() { lease.Register("memory", memory.Factory()) }, "used")
	assert.Panics(t, func() { lease.Register(" ", memory.Factory()) }, "empty")
	assert.Panics(t, func() { lease.Register("x", nil) }, "nil")
}

// anonymous is a store that does not say where its record is.
type anonymous struct{ lease.Store }

// incomparable is a type that cannot even be compared.
type incomparable struct {
	lease.Store
	_ []int
}

// Two uses of one record would displace each other, and each would take the other's holder for its own:
// neither runs, and nobody says so.
func TestUse_OneRecordServesOneUse(t *testing.T) {
	store, other := leasetest.NewMemory(), leasetest.NewMemory()
	pointer := &anonymous{store.View("a")}
	open := func(s lease.Store, use string) (*lease.Lease, error) {
		return lease.New(s, "a", defaults, lease.Options{Use: use})
	}
	for name, c := range map[string]struct {
		first, second lease.Store
		use           string
		refused       bool
	}{
		"another use of it":               {store.View("a"), store.View("b"), "the singleton mailer", true},
		"another member of the same use":  {store.View("a"), store.View("b"), "the resolver", false},
		"another record":                  {store.View("a"), other.View("a"), "the singleton mailer", false},
		"no use":                          {store.View("a"), store.View("b"), "", false},
		"the store itself, which is mute": {pointer, pointer, "the singleton mailer", true},
		"a store that cannot be compared": {incomparable{Store: store.View("a")}, incomparable{Store: store.View("a")}, "the singleton mailer", false},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := open(c.first, "the resolver")
			require.NoError(t, err)
			defer first.Close()
			second, err := open(c.second, c.use)
			if !c.refused {
				require.NoError(t, err)
				second.Close()
				return
			}
			require.ErrorIs(t, err, lease.ErrInUse)
			require.ErrorContains(t, err, "the resolver")
			require.ErrorContains(t, err, c.use)
			require.NotContains(t, err.Error(), "\n")

			again, err := open(c.first, "the resolver")
			require.NoError(t, err)
			first.Close()
			first.Close() // counts once
			_, err = open(c.second, c.use)
			require.ErrorIs(t, err, lease.ErrInUse)
			again.Close()
			second, err = open(c.second, c.use)
			require.NoError(t, err, "nobody uses it any more")
			second.Close()
		})
	}
}
