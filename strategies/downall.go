package strategies

import "github.com/serf-sbr/serf-sbr/sbr"

// DownAll downs all members as soon as one is unreachable: no side is ever wrong, and none is left. It suits
// clusters that are restarted as a whole.
type DownAll struct{}

var _ sbr.Strategy = DownAll{}

// Decide answers DownAll (as Akka and Pekko do: always, also when members are indirectly connected), or None
// for a view in which no member is unreachable.
func (DownAll) Decide(v *sbr.View) sbr.Choice {
	s := look(v, "")
	if s.whole() {
		return nothing()
	}
	return s.choose(sbr.DownAll, s.reach(", and this strategy keeps no part of a partition"))
}

// Validate has nothing to check: there are no settings.
func (DownAll) Validate() error { return nil }
