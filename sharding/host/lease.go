package host

import (
	"math"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// maxToken is the last token of a lease: it has to fit a signed number.
const maxToken = math.MaxInt64

// tryLease asks for a shard's lease when it is time to.
func (m *Machine) tryLease(s int) {
	sl := &m.slots[s]
	if sl.inFlight || m.now < sl.leaseAt {
		return
	}
	sl.attempt++
	sl.inFlight = true
	m.emit(AcquireLease{Shard: s, Attempt: sl.attempt})
}

func (m *Machine) leaseAnswered(e LeaseAnswer) {
	if e.Shard < 0 || e.Shard >= len(m.slots) {
		return
	}
	sl := &m.slots[e.Shard]
	if e.Attempt != sl.attempt || !sl.inFlight || sl.phase != Acquiring {
		return // given up, and given back, meanwhile
	}
	sl.inFlight = false
	if e.Outcome != sbr.Granted {
		sl.leaseAt = m.now + m.cfg.LeaseRetryInterval
		m.explain(TopicLease, e.Shard, "the lease was not granted: %s; asking again in %v", e.Why, m.cfg.LeaseRetryInterval)
		return
	}
	// No state in state.go tells tokens apart for this: in the walks no store forgets.
	if last := max(sl.token, sl.handedToken); e.Token <= last || e.Token > maxToken {
		sl.leaseAt = m.now + m.cfg.LeaseRetryInterval
		m.emit(ReleaseLease{Shard: e.Shard, Attempt: sl.attempt})
		m.explain(TopicStuck, e.Shard, "it does not start: the lease's token %d is not between that of the last run "+
			"known here, %d, and %d; its store has forgotten or was changed by hand; asking again in %v",
			e.Token, last, uint64(maxToken), m.cfg.LeaseRetryInterval)
		return
	}
	sl.leased = true
	m.start(e.Shard, e.Token)
}

// leaseLost stops what runs under the lease; once that has ended the lease is asked for again.
func (m *Machine) leaseLost(e LeaseLost) {
	if e.Shard < 0 || e.Shard >= len(m.slots) {
		return
	}
	sl := &m.slots[e.Shard]
	if !sl.leased || e.Attempt != sl.attempt {
		return
	}
	sl.leased = false
	switch sl.phase {
	case Active:
		sl.again = true
		m.stop(e.Shard, CauseLeaseLost, "the lease is lost: "+e.Why, "")
	case Resting:
		sl.again = true
		m.release(e.Shard)
	}
}

// release gives the lease back, or goes on at once where there is none. Nothing runs.
func (m *Machine) release(s int) {
	sl := &m.slots[s]
	if !m.cfg.UseLease || sl.phase == Taking {
		m.settle(s)
		return
	}
	m.enter(s, Releasing)
	sl.leased, sl.inFlight = false, false
	m.emit(ReleaseLease{Shard: s, Attempt: sl.attempt})
}

func (m *Machine) leaseReleased(e LeaseReleased) {
	if e.Shard < 0 || e.Shard >= len(m.slots) {
		return
	}
	if sl := &m.slots[e.Shard]; sl.phase == Releasing && e.Attempt == sl.attempt {
		m.settle(e.Shard)
	}
}
