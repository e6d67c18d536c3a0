package allocation

import "github.com/serf-sbr/serf-sbr/sbr"

// aim asks Config.Target where the shards should be.
func (w *work) aim() {
	if w.config.Target == nil || len(w.able) == 0 {
		return
	}
	members, index := make([]Member, len(w.able)), make(map[sbr.ID]int, len(w.able))
	for i, j := range w.able {
		members[i], index[w.members[j].ID] = w.members[j], j
	}
	owners := make(map[string]sbr.ID, len(w.shards))
	for i, j := range w.at {
		if j != nowhere {
			owners[w.shards[i]] = w.members[j].ID
		}
	}
	wanted := w.config.Target(w.Shards(), members, owners)
	w.target = make([]int, len(w.shards))
	for i, name := range w.shards {
		j, able := index[wanted[name]]
		if !able {
			j = nowhere
		}
		w.target[i] = j
	}
}

// follow takes each of the shards to its target, and returns those that have none.
func (w *work) follow(shards []int, reason Reason) (rest []int) {
	if w.target == nil {
		return shards
	}
	for _, i := range shards {
		if w.target[i] == nowhere {
			rest = append(rest, i)
		} else {
			w.move(i, w.target[i], reason)
		}
	}
	return rest
}

// misplaced are the shards that run elsewhere than at their targets.
func (w *work) misplaced() (shards []int) {
	for i, j := range w.at {
		if !w.fixed[i] && j != nowhere && w.target[i] != nowhere && w.target[i] != j {
			shards = append(shards, i)
		}
	}
	return shards
}
