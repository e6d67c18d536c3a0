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

var errNoNamespace = errors.New("no such namespace")

func init() {
	lease.Register("memory", memory.Factory())
	lease.Register("broken", func(context.Context, lease.Spec) (lease.Store, error) { return nil, errNoNamespace })
}

func TestOpen(t *testing.T) {
	for _, key := range []string{"", "kubernets"} {
		_, err := lease.Open(t.Context(), key, lease.Spec{})
		require.ErrorIs(t, err, lease.ErrUnknownImplementation)
		assert.ErrorContains(t, err, `lease: unknown implementation "`+key+`" (known: broken, `)
	}
	_, err := lease.Open(t.Context(), "broken", lease.Spec{})
	require.ErrorIs(t, err, errNoNamespace)
	assert.EqualError(t, err, "lease: broken: no such namespace")
	assert.ErrorIs(t, lease.Spec{Decode: func(any) error { return errNoNamespace }}.Configure(nil), errNoNamespace)
}

func TestRegister_MisusePanics(t *testing.T) {
	assert.Panics(t, func() { lease.Register("memory", memory.Factory()) }, "used")
	assert.Panics(t, func() { lease.Register(" ", memory.Factory()) }, "empty")
	assert.Panics(t, func() { lease.Register("x", nil) }, "nil")
}
