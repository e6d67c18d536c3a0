package conduct

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Margins are those that a machine has to wait for which begins now: of members that offered the topic and are gone. They end so long after now.
func Margins(p downing.Peers, topic string, margin time.Duration) map[sbr.ID]time.Duration {
	gone := make(map[sbr.ID]time.Duration)
	for _, d := range p.Gone {
		if left := margin - Since(d.At); left > 0 && slices.Contains(d.Serves, topic) {
			gone[d.ID] = left
		}
	}
	return gone
}
