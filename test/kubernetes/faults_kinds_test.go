package kubernetes_test

import (
	"net/http"
	"time"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

const (
	// lateBy is longer than any call of A, and the opening of a watch, waits.
	lateBy = 3500 * time.Millisecond
	// slowBy is longer than the opening of a watch may take, too.
	slowBy = 4 * time.Second
)

// reach says which requests a fault strikes, from the first one of the step's kind on.
type reach uint8

const (
	// once: that one.
	once reach = iota
	// sameKind: that one, and all of its kind until the fault is healed.
	sameKind
	// writes: that one, and all writes.
	writes
	// everything: that one, and all of A's requests.
	everything
)

// fault is what happens to A's requests.
type fault struct {
	name, lasts string
	reach       reach
	strike      func(c *cell, verb string) kubetest.Fault
	// stays: it does not end by itself.
	stays bool
	// unseen: the API server never sees what is struck. unseenReads: what does not write. late: only after its client gave up.
	unseen, unseenReads, late bool
	// answers are those of the API server to the first write struck.
	answers func(step string) []int
	// byHand: somebody takes the lease away from its holder past the contract. The holder learns of it with its next heartbeat.
	byHand bool
	// cut is how the stream of a watch ends before its next opening is struck.
	cut kubetest.Cut
	// before and after surround the fault, where it is not made by the proxy. May be nil.
	before, after func(*cell)
	disaster      *disaster
}

func (f fault) once() *fault {
	f.lasts, f.reach = "once", once
	return &f
}

// answeredWith says how the API server answers the first write struck.
func (f fault) answeredWith(answers func(string) []int) fault {
	f.answers = answers
	return f
}

func (f fault) until(lasts string, r reach) *fault {
	f.lasts, f.reach, f.stays = lasts, r, true
	return &f
}

// forGood strikes everything that A sends from the step on.
func (f fault) forGood() *fault { return f.until("from then on", everything) }

func (c *cell) reaches(count int, verb string) bool {
	if c.fault.disaster != nil && c.step.name == "release" && c.a.Check() {
		return false // a heartbeat
	}
	kind := verb == c.step.verb
	switch c.fault.reach {
	case once:
		return kind && count == 0
	case sameKind:
		return kind
	case writes:
		return kind || count > 0 && verb != http.MethodGet && verb != kubetest.VerbWatch
	default:
		return kind || count > 0
	}
}

func doing(f kubetest.Fault) func(*cell, string) kubetest.Fault {
	return func(*cell, string) kubetest.Fault { return f }
}

func committed(string) []int { return []int{http.StatusOK, http.StatusCreated} }

func conflict(string) []int { return []int{http.StatusConflict} }

// answered is an answer that something on the way gives in place of the API server.
func answered(name string, status int, retryAfter string) fault {
	f := kubetest.Fault{Kind: kubetest.FaultStatus, Status: status, RetryAfter: retryAfter}
	return fault{name: name, strike: doing(f), unseen: true}
}

var (
	responseLost = fault{
		name: "response lost after the commit", answers: committed,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropResponse}),
	}
	requestLost = fault{
		name: "request lost", unseen: true,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropRequest}),
	}
	committedLate = fault{
		name: "committed after the client gave up", late: true,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropResponse, Delay: lateBy}),
	}
	deadBefore = fault{
		name: "connection dead, packets swallowed, before the commit", unseen: true, cut: kubetest.CutFreeze,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropRequest, Cut: kubetest.CutFreeze}),
	}
	deadAfter = fault{
		name: "connection dead, packets swallowed, after the commit", answers: committed, cut: kubetest.CutFreeze,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropResponse, Cut: kubetest.CutFreeze}),
	}
	resetBefore = fault{
		name: "connection reset before the commit", unseen: true, cut: kubetest.CutReset,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropRequest, Cut: kubetest.CutReset}),
	}
	resetAfter = fault{
		name: "connection reset after the commit", answers: committed, cut: kubetest.CutReset,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultDropResponse, Cut: kubetest.CutReset}),
	}
	halfBody = fault{
		name: "half a body", answers: committed,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultHalfBody}),
	}
	slowAnswer = fault{
		name: "slow beyond the time-out", answers: committed,
		strike: doing(kubetest.Fault{ResponseDelay: slowBy}),
	}
	unauthorized       = answered("401", http.StatusUnauthorized, "")
	forbidden          = answered("403", http.StatusForbidden, "")
	tooMany            = answered("429 with Retry-After: 1", http.StatusTooManyRequests, "1")
	internalError      = answered("500", http.StatusInternalServerError, "")
	serviceUnavailable = answered("503", http.StatusServiceUnavailable, "")
	foreignNotFound    = fault{
		name: "404 of a load balancer", unseen: true,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultStatus, Status: http.StatusNotFound, Foreign: true}),
	}
	errorAfter = fault{
		name: "500 after the commit", answers: committed,
		strike: doing(kubetest.Fault{Kind: kubetest.FaultReplaceResponse, Status: http.StatusInternalServerError}),
	}
	// rightWithdrawn is a real 403.
	rightWithdrawn = fault{
		name: "403: the right is withdrawn", answers: func(string) []int { return []int{http.StatusForbidden} },
		strike: doing(kubetest.Fault{}),
		before: func(c *cell) { c.allow(c.step.right) },
		after:  func(c *cell) { c.allow("") },
	}
	deleted = fault{
		name: "404: the object is deleted", answers: deletedAnswers, byHand: true,
		strike: func(c *cell, _ string) kubetest.Fault {
			c.edit() // there must be one to delete
			c.remove()
			return kubetest.Fault{}
		},
	}
	edited = fault{
		name: "409: somebody edits a label", answers: conflict, unseenReads: true,
		strike: func(c *cell, _ string) kubetest.Fault {
			if !c.step.write { // the API server has no conflict to offer here
				return kubetest.Fault{Kind: kubetest.FaultStatus, Status: http.StatusConflict}
			}
			c.edit()
			return kubetest.Fault{}
		},
	}
	// displaced: the holder has A's name, and is not this A.
	displaced = fault{
		name: "409: another life under A's name gets the lease", answers: conflict,
		strike: func(c *cell, _ string) kubetest.Fault {
			if c.step.name == "watch" {
				_ = c.b.Release(c.ctx)
			}
			c.formerLife()
			return kubetest.Fault{}
		},
	}
	overtaken = fault{
		name: "409: somebody else gets the lease", answers: conflict, byHand: true,
		strike: func(c *cell, _ string) kubetest.Fault {
			switch c.step.name {
			case "heartbeat", "release":
				c.replaceHolder()
			case "watch":
				_ = c.b.Release(c.ctx)
				c.b.Ask(c.ctx)
			default:
				c.b.Ask(c.ctx)
			}
			return kubetest.Fault{}
		},
	}
)

// deletedAnswers: a PUT creates the object; a PATCH has nothing to change.
func deletedAnswers(step string) []int {
	if step == "create" {
		return []int{http.StatusCreated}
	}
	return []int{http.StatusNotFound}
}
