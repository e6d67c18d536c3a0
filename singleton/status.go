package singleton

import (
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Status is what a Manager does.
type Status struct {
	Name string `json:"name"`
	// Phase is that of package handover: idle, taking, acquiring, active, resting, stopping, releasing.
	Phase string `json:"phase"`
	// Token is the token of the present run; zero while nothing runs here.
	Token uint64 `json:"token"`
	// WaitingFor are the members whose consent is missing, by name.
	WaitingFor []string `json:"waiting-for,omitempty"`
	// LeaseHolder is the holder of the lease that the manager waits for. Empty: it waits for none, or the
	// holder is unknown.
	LeaseHolder string `json:"lease-holder,omitempty"`
	// Margin is the rest of the removal margin that the manager waits for.
	Margin time.Duration `json:"margin,omitempty"`
	// Resigned: the singleton is never run here again.
	Resigned bool `json:"resigned,omitempty"`
	// Last is the newest sentence of explanation.
	Last string `json:"last,omitempty"`
}

// Status returns what the manager does. It is safe for concurrent use.
func (m *Manager) Status() Status {
	s, _ := m.status.Get()
	s.WaitingFor = append([]string(nil), s.WaitingFor...)
	return s
}

// publish updates the value of Status.
func (m *Manager) publish() {
	s := m.machine.Status()
	next := Status{Name: m.cfg.Name, Resigned: s.Resigned, Last: m.last, LeaseHolder: m.driver.LeaseHolder(0)}
	next.Phase, next.Token = m.machine.Phase().String(), m.machine.Token()
	for _, id := range s.Asked {
		next.WaitingFor = append(next.WaitingFor, downing.NameOf(id))
	}
	if s.Until > 0 {
		next.Margin = max(s.Until-m.driver.Now(), 0).Round(time.Millisecond)
	}
	m.tell(next)
}

func (m *Manager) tell(s Status) { m.status.Update(func(Status) (Status, bool) { return s, true }) }
