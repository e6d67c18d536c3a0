package postgres_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	s := newServer(t)
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		database := s.database(t)
		return leasetest.Harness{
			Open:      func(t testing.TB, _ string) lease.Store { return s.store(t, database) },
			Delete:    func(t testing.TB) { s.sql(t, database, "DELETE FROM sbr_lease") },
			Interrupt: s.restart,
		}
	})
}
