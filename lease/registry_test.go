package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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

func TestProvider_SameTripleIsTheSameInstance(t *testing.T) {
	p := lease.NewProvider(lease.ProviderConfig{Registry: memoryRegistry(), System: "payments"})
	defer func() { require.NoError(t, p.Close()) }()
	get := func(name, key, owner string) *lease.Lease {
		l, err := p.Lease(t.Context(), name, key, owner)
		require.NoError(t, err)
		return l
	}
	a := get("sbr", "memory", "a")
	assert.Same(t, a, get("sbr", "memory", "a"))
	others := []*lease.Lease{a, get("sbr", "memory", "b"), get("other", "memory", "a"), get("sbr", "another", "a")}
	for i, l := range others {
		for _, m := range others[:i] {
			assert.NotSame(t, l, m)
		}
	}
	assert.Equal(t, lease.Granted, a.Acquire(t.Context(), lease.Proposal{}, nil).Kind)
	assert.Equal(t, lease.Held, others[1].Acquire(t.Context(), lease.Proposal{}, nil).Kind, "one name is one record")
	assert.Equal(t, lease.Granted, others[2].Acquire(t.Context(), lease.Proposal{}, nil).Kind)
	assert.Equal(t, lease.Granted, others[3].Acquire(t.Context(), lease.Proposal{}, nil).Kind)
}

func TestProvider_ConcurrentCallsShareOneInstance(t *testing.T) {
	r, opened := lease.NewRegistry(), make(chan string, 100)
	inner := memory.Factory()
	r.Register("slow", func(ctx context.Context, s lease.Spec) (lease.Store, error) {
		opened <- s.Owner
		return inner(ctx, s)
	})
	p := lease.NewProvider(lease.ProviderConfig{Registry: r})
	defer func() { require.NoError(t, p.Close()) }()
	var wg sync.WaitGroup
	got := make(chan *lease.Lease, 30)
	for range 30 {
		wg.Go(func() {
			l, err := p.Lease(t.Context(), "n", "slow", "o")
			assert.NoError(t, err)
			got <- l
		})
	}
	wg.Wait()
	first := <-got
	for range 29 {
		assert.Same(t, first, <-got)
	}
	assert.Len(t, opened, 1)
}

func TestProvider_SettingsFallBack(t *testing.T) {
	p := lease.NewProvider(lease.ProviderConfig{
		Registry: memoryRegistry(),
		Settings: lease.Settings{HeartbeatTimeout: time.Minute},
		Implementations: map[string]lease.Implementation{
			"another": {Settings: lease.Settings{OperationTimeout: time.Second}},
		},
	})
	defer func() { require.NoError(t, p.Close()) }()
	l, err := p.Lease(t.Context(), "n", "memory", "o")
	require.NoError(t, err)
	assert.Equal(t, lease.Settings{HeartbeatTimeout: time.Minute, OperationTimeout: 5 * time.Second}, l.Settings())
	l, err = p.Lease(t.Context(), "n", "another", "o")
	require.NoError(t, err)
	assert.Equal(t, lease.Settings{HeartbeatTimeout: time.Minute, OperationTimeout: time.Second}, l.Settings())
}

func TestProvider_ErrorsAreNotRemembered(t *testing.T) {
	r, fail := lease.NewRegistry(), true
	r.Register("x", func(context.Context, lease.Spec) (lease.Store, error) {
		if fail {
			return nil, errors.New("not yet")
		}
		return memory.NewStore().View("x"), nil
	})
	p := lease.NewProvider(lease.ProviderConfig{Registry: r})
	_, err := p.Lease(t.Context(), "n", "x", "o")
	require.ErrorContains(t, err, "not yet")
	_, err = p.Lease(t.Context(), "n", "nope", "o")
	require.ErrorIs(t, err, lease.ErrUnknownImplementation)
	fail = false
	_, err = p.Lease(t.Context(), "n", "x", "")
	require.ErrorContains(t, err, "owner")
	l, err := p.Lease(t.Context(), "n", "x", "o")
	require.NoError(t, err)
	require.NoError(t, p.Close())
	assert.ErrorIs(t, l.Acquire(t.Context(), lease.Proposal{}, nil).Err, lease.ErrClosed)
	_, err = p.Lease(t.Context(), "n", "x", "o")
	assert.ErrorIs(t, err, lease.ErrClosed)
}

type closingStore struct {
	lease.Store
	closed *bool
}

func (s closingStore) Close() error { *s.closed = true; return nil }

func TestProvider_ClosesStores(t *testing.T) {
	r, closed := lease.NewRegistry(), false
	r.Register("x", func(context.Context, lease.Spec) (lease.Store, error) {
		return closingStore{memory.NewStore().View("x"), &closed}, nil
	})
	p := lease.NewProvider(lease.ProviderConfig{Registry: r})
	_, err := p.Lease(t.Context(), "n", "x", "o")
	require.NoError(t, err)
	require.NoError(t, p.Close())
	assert.True(t, closed)
}
