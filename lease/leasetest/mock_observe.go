package leasetest

// Attempts is how many acquires were asked for, by whichever method. One that waits asks again for each answer that is not a grant.
func (m *mock) Attempts() int { return m.read(func() int { return m.attempts }) }

// Acquired is how many acquires were granted.
func (m *mock) Acquired() int { return m.read(func() int { return m.acquired }) }

// Released is how many releases there were of what was held. Those in vain and those of unknown outcome do not count.
func (m *mock) Released() int { return m.read(func() int { return m.released }) }

// WasReleased reports whether what was acquired is released: at least once, and nothing is held now.
func (m *mock) WasReleased() bool {
	return m.Released() > 0 && !m.isHeld()
}

// Token returns the token of the present grant, else zero. Each grant has the next larger one.
func (m *mock) Token() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.held {
		return 0
	}
	return m.token
}

// Owner returns "mock".
func (m *mock) Owner() string { return mockOwner }

func (m *mock) isHeld() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

func (m *mock) read(what func() int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return what()
}
