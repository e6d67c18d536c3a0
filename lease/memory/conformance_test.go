package memory_test

import (
	"testing"
	"time"

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
			Open:   func(_ testing.TB, party string) lease.Store { return s.View(party) },
			Delete: func(testing.TB) { s.Delete() },
			Interrupt: func(testing.TB) {
				for _, party := range []string{"a", "b", "w"} {
					s.View(party).SetUnavailable(true)
					time.AfterFunc(10*time.Millisecond, s.View(party).Heal)
				}
			},
		}
	})
}
