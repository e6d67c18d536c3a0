package walktest

import "time"

// World is a cluster and the packets under way in it: what the states of models begin with. It is a value.
type World[B any] struct {
	Cluster
	Packets Packets[B]
}

// Transitions is what can happen to what runs on the members, next to what happens to their cluster and their
// packets.
type Transitions interface {
	// Duties appends what happens before time passes, Lapses what comes by itself at some time, and Faults
	// what may happen as long as there is a budget: each with that of the cluster, where it has any.
	Duties(to []Move) []Move
	Lapses(to []Move) []Move
	Faults(to []Move) []Move
	// Deadlines appends the moments for which the machines wait.
	Deadlines(to []time.Duration) []time.Duration
}

// PacketKey tells bodies of packets apart. See Packets.AppendKey.
type PacketKey[B any] func(b []byte, l *Packet[B]) []byte

// Moves appends what can happen next, Waits last. It is complete: whatever is not in it, cannot be.
func (x *World[B]) Moves(to []Move, on Transitions, key PacketKey[B]) []Move {
	to, prompt := x.Packets.Moves(to, &x.Cluster, x.Packets.Sorted(key))
	packets := len(to)
	to = on.Duties(to)
	idle := packets == len(to) && prompt == 0 && !x.Overdue()
	to = on.Faults(on.Lapses(x.Views(to)))
	if idle && x.Next(on, len(to) > 0) > 0 {
		to = append(to, Move{Kind: Waits})
	}
	return to
}

// Fair is what happens next where nothing goes wrong: packets come, then what is due, then faults end and
// members notice things. When nothing of that is left, time passes until all is well; ok is false when it is.
func (x *World[B]) Fair(on Transitions, key PacketKey[B], well func() bool) (mv Move, ok bool) {
	for _, k := range x.Packets.Sorted(key) {
		if x.Live(int(x.Packets.At(k).To)) {
			return Move{Kind: Delivers, At: uint8(k)}, true
		}
	}
	if due := on.Duties(nil); len(due) > 0 {
		return due[0], true
	}
	if mv, ok := x.Cluster.Fair(); ok {
		return mv, true
	}
	if lapses := on.Lapses(nil); len(lapses) > 0 {
		return lapses[0], true
	}
	return Move{Kind: Waits}, x.Hopeless() || !well()
}

// Anything reports whether something but waiting is possible: then time goes in single steps.
func (x *World[B]) Anything(on Transitions) bool {
	for k := range x.Packets.Len() {
		if x.Live(int(x.Packets.At(k).To)) {
			return true
		}
	}
	return len(on.Faults(on.Lapses(x.Views(nil)))) > 0
}

// Next is how long it takes until something more can happen: a step while anything may happen at any moment.
// Zero: nothing will.
func (x *World[B]) Next(on Transitions, anything bool) time.Duration {
	return x.Pass(anything, on.Deadlines(make([]time.Duration, 0, 16))...)
}
