package memory_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasetest.Harness {
		s := memory.NewStore()
		return leasetest.Harness{
			Open:   func(testing.TB, string) lease.Store { return s },
			Delete: func(testing.TB) { s.Delete() },
		}
	})
}

var held = lease.Record{Holder: "a", Token: 1}

func TestStore_AdministratorsTools(t *testing.T) {
	s := memory.NewStore()
	s.Touch()
	assert.Zero(t, s.Snapshot(), "there is nothing to touch")
	first := s.Restore(held)
	s.Touch()
	assert.NotEqual(t, first.Version, s.Snapshot().Version)
	assert.Equal(t, held, s.Snapshot().Record)
	s.Delete()
	assert.Zero(t, s.Snapshot())
	assert.NotEqual(t, first.Version, s.Restore(held).Version, "versions never repeat")
	assert.Equal(t, []lease.Record{held, {}, held}, s.History())
}

func TestFactory_OneNameIsOneRecord(t *testing.T) {
	open := memory.Factory()
	get := func(system, name, owner string) lease.Store {
		s, err := open(t.Context(), lease.Spec{System: system, Name: name, Owner: owner})
		require.NoError(t, err)
		return s
	}
	_, err := get("s", "n", "a").Write(t.Context(), held, "")
	require.NoError(t, err)
	for _, other := range []struct {
		system, name string
		want         lease.Record
	}{{"s", "n", held}, {"s", "m", lease.Record{}}, {"r", "n", lease.Record{}}} {
		got, err := get(other.system, other.name, "b").Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, other.want, got.Record)
	}
}
