package kubernetes_test

import "strings"

// row is what one fault leads to at each step: the outcome; what the object holds. " | " parts two that may both happen.
type row struct {
	fault *fault
	want  [stepCount]string
}

// faultTable is the expected matrix, in the order of steps: read, create, update, heartbeat, release, watch.
//
// A is struck. Before an acquire the object is free under token 1, or absent where A is to create it; before a heartbeat or a
// release A holds it under token 2. A watch begins with B holding under token 2, and B takes it again while the fault lasts.
func faultTable() []row {
	// recovers is the row of a fault that A gets over at once.
	recovers := [stepCount]string{"granted; A 2", "granted; A 1", "granted; A 2", "kept; A 2", "released; free 2", "catches up; B 3"}
	// cutOff is the row of a party whose requests all fail before the API server sees them.
	cutOff := [stepCount]string{
		"unknown; free 1", "unknown; absent", "unknown; free 1", "lost; A 2", "unknown; A 2", "blind until healed; B 3",
	}
	// unheard is the row of a party whose requests are executed, and that never hears of it.
	unheard := [stepCount]string{
		"unknown; free 1", "unknown; A 1", "unknown; A 2", "lost; A 2", "unknown; free 2", "blind until healed; B 3",
	}
	// refused is the row of an answer that says for certain that nothing was written. A read and a heartbeat are tried again.
	refused := [stepCount]string{
		"granted; A 2", "unknown (refused); absent", "unknown (refused); free 1", "kept; A 2", "unknown (refused); A 2", "catches up; B 3",
	}
	refusedForGood := [stepCount]string{
		"unknown; free 1", "unknown (refused); absent", "unknown (refused); free 1", "lost; A 2", "unknown (refused); A 2",
		"blind until healed; B 3",
	}
	return []row{
		{responseLost.once(), recovers},
		{responseLost.forGood(), unheard},
		{committedLate.answeredWith(conflict).once(), recovers}, // another write of A's has settled it by then
		{committedLate.answeredWith(committed).until("every one of its kind", sameKind), [stepCount]string{
			"unknown; free 1", "unknown; absent, then A 1", "unknown; free 1, then A 2", "lost; A 2", "unknown; A 2, then free 2",
			"catches up; B 3",
		}},
		{requestLost.once(), recovers},
		{requestLost.forGood(), cutOff},
		// A dead connection is noticed after 2 to 3 s. What is left of a call may be enough for another request here, or for half of
		// one; a heartbeat has more.
		{deadBefore.once(), [stepCount]string{
			"unknown; free 1 | unknown; A 2 | granted; A 2", "unknown; absent | unknown; A 1 | granted; A 1",
			"unknown; free 1 | unknown; A 2 | granted; A 2", "kept; A 2", "unknown; A 2 | released; free 2", "catches up; B 3",
		}},
		{deadBefore.forGood(), cutOff},
		{deadAfter.once(), [stepCount]string{
			"unknown; free 1 | unknown; A 2 | granted; A 2", "unknown; A 1 | granted; A 1", "unknown; A 2 | granted; A 2", "kept; A 2", "unknown; free 2 | released; free 2", "catches up; B 3",
		}},
		{deadAfter.forGood(), unheard},
		{resetBefore.once(), recovers},
		{resetBefore.forGood(), cutOff},
		{resetAfter.once(), recovers},
		{resetAfter.forGood(), unheard},
		{unauthorized.once(), recovers},
		{unauthorized.forGood(), cutOff},
		{forbidden.once(), refused},
		{forbidden.forGood(), refusedForGood},
		{rightWithdrawn.until("until it is given back", sameKind), [stepCount]string{
			"unknown; free 1", "unknown (refused); absent", "unknown (refused); free 1", "lost; A 2", "unknown (refused); A 2",
			"catches up; B 3",
		}},
		{foreignNotFound.once(), recovers},
		{foreignNotFound.forGood(), cutOff},
		{deleted.once(), [stepCount]string{
			"granted; A 1", "granted; A 1", "granted; A 2", "lost; absent", "not-released; absent", "catches up; B 3",
		}},
		{edited.once(), recovers},
		{edited.until("before each write", writes), [stepCount]string{
			"unknown; free 1", "unknown; free 0", "unknown; free 1", "lost; A 2", "unknown; A 2", "catches up; B 3",
		}},
		{overtaken.once(), [stepCount]string{
			"held by B; B 2", "held by B; B 1", "held by B; B 2", "lost; operator 2", "not-released; operator 2", "catches up; B 4",
		}},
		{displaced.once(), [stepCount]string{
			"granted; A 3", "granted; A 2", "granted; A 3", "lost; A 3", "not-released; A 3", "catches up; B 4",
		}},
		{tooMany.once(), recovers},
		{tooMany.forGood(), cutOff},
		{internalError.once(), recovers},
		{internalError.forGood(), cutOff},
		{serviceUnavailable.once(), recovers},
		{serviceUnavailable.forGood(), cutOff},
		{errorAfter.once(), recovers},
		{errorAfter.forGood(), unheard},
		{halfBody.once(), recovers},
		{halfBody.forGood(), unheard},
		{slowAnswer.once(), recovers},
		{slowAnswer.forGood(), unheard},
	}
}

// disasters are the rows of faults that strike the whole cluster.
func disasters(killed, stalled *disaster) []row {
	strikes := func(name string, d *disaster) *fault {
		return fault{name: name, strike: d.strike, disaster: d}.until("until it is back", everything)
	}
	return []row{
		{strikes("API server killed and restarted", killed), [stepCount]string{
			"unknown; free 1", "unknown; absent", "unknown; free 1", "lost; A 2", "unknown; A 2 | unknown; free 2", "catches up; B 3",
		}},
		// Here a write can be committed when etcd goes on. Where nobody uses it A's lease undoes it.
		{strikes("etcd stopped and continued", stalled), [stepCount]string{
			"unknown; free 1", "unknown; absent | unknown; A 1 | unknown; free 1", "unknown; free 1 | unknown; A 2 | unknown; free 2",
			"lost; A 2", "unknown; A 2 | unknown; free 2", "catches up; B 3",
		}},
	}
}

// allowed are the results that a cell may have.
func (r row) allowed(step int) []string { return strings.Split(r.want[step], " | ") }
