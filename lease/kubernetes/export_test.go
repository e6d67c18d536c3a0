package kubernetes

import "time"

// Hurry shortens the pauses of watches.
func (s *Store) Hurry(open, poll time.Duration) {
	s.pace = pace{open: open, retryMin: 5 * time.Millisecond, retryMax: 20 * time.Millisecond, poll: poll}
}
