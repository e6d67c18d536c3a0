package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

func memoryRegistry() *lease.Registry {
	r := lease.NewRegistry()
	r.Register("memory", memory.Factory())
	r.Register("another", memory.Factory())
	return r
}

func TestRegistry_UnknownKeyListsTheKnownOnes(t *testing.T) {
	for _, key := range []string{"", "kubernets"} {
		_, err := memoryRegistry().Open(t.Context(), key, lease.Spec{})
		require.ErrorIs(t, err, lease.ErrUnknownImplementation)
		assert.EqualError(t, err, `lease: unknown implementation "`+key+`" (known: another, memory)`)
	}
	_, err := lease.NewRegistry().Open(t.Context(), "x", lease.Spec{})
	assert.ErrorContains(t, err, "(known: none)")
}

func TestRegistry_FactoryErrorsNameTheKey(t *testing.T) {
	r, bad := lease.NewRegistry(), errors.New("no such namespace")
	r.Register("mine", func(context.Context, lease.Spec) (lease.Store, error) { return nil, bad })
	_, err := r.Open(t.Context(), "mine", lease.Spec{})
	assert.ErrorIs(t, err, bad)
	assert.EqualError(t, err, "lease: mine: no such namespace")
}

func TestRegistry_MisuseOfRegisterPanics(t *testing.T) {
	r := memoryRegistry()
	assert.Panics(t, func() { r.Register("memory", memory.Factory()) }, "used")
	assert.Panics(t, func() { r.Register(" ", memory.Factory()) }, "empty")
	assert.Panics(t, func() { r.Register("x", nil) }, "nil")
}

func init() { lease.Register("registry-test", memory.Factory()) }

func TestRegistry_Default(t *testing.T) {
	s, err := lease.Open(t.Context(), "registry-test", lease.Spec{System: "s", Name: "n", Owner: "o"})
	require.NoError(t, err)
	assert.NotNil(t, s)
	assert.Contains(t, lease.Default.Keys(), "registry-test")
}

func TestSpec_Configure(t *testing.T) {
	cfg := struct{ Path string }{"default"}
	require.NoError(t, lease.Spec{}.Configure(&cfg))
	assert.Equal(t, "default", cfg.Path)
	bad := errors.New("unknown key")
	assert.ErrorIs(t, lease.Spec{Decode: func(any) error { return bad }}.Configure(&cfg), bad)
}
