package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
)

// renderFaults is docs/lease-faults.md: the table of the matrix, for people.
func renderFaults() string {
	rows := append(faultTable(), disasters(nil, nil)...)
	var b strings.Builder
	fmt.Fprintf(&b, faultsHead, faultSettings.HeartbeatTimeout, faultSettings.Interval(), faultSettings.OperationTimeout, faultRequestTimeout,
		faultSettings.Window(), len(rows)*stepCount)
	b.WriteString("\n## Getting the lease\n\n" + acquireHead)
	renderSteps(&b, rows, 0, 3)
	b.WriteString("\n## Holding it, giving it back, watching it\n\n" + holdHead)
	renderSteps(&b, rows, 3, stepCount)
	b.WriteString(faultsTail)
	return b.String()
}

func renderSteps(b *strings.Builder, rows []row, from, to int) {
	b.WriteString("| Fault | How long |")
	for _, s := range steps[from:to] {
		fmt.Fprintf(b, " %s |", s.name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", to-from) + "\n")
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s |", r.fault.name, r.fault.lasts)
		for i := from; i < to; i++ {
			fmt.Fprintf(b, " %s |", cellText(r.allowed(i)))
		}
		b.WriteString("\n")
	}
}

// cellText joins the objects that go with one outcome: "**unknown** · free 1 or A 2".
func cellText(allowed []string) string {
	var outcomes []string
	objects := map[string][]string{}
	for _, one := range allowed {
		outcome, object, _ := strings.Cut(one, "; ")
		if !slices.Contains(outcomes, outcome) {
			outcomes = append(outcomes, outcome)
		}
		objects[outcome] = append(objects[outcome], object)
	}
	var parts []string
	for _, outcome := range outcomes {
		parts = append(parts, "**"+outcome+"** · "+strings.Join(objects[outcome], " or "))
	}
	return strings.Join(parts, ", or ")
}

const faultsHead = "<!-- Written by the code: go test ./lease/kubernetes -run TestFault -update. Changes by hand are lost. -->\n" + `
# What a lease makes of each fault

What becomes of a lease in Kubernetes when requests to the API server fail, measured between a real lease and a real API server with a
proxy between them that injects the fault. Party **A** is struck: exactly the request that the column names (and, where the second column
says so, what A sends from then on). Party **B** has no faults; it wants the lease too.

Read a cell as *outcome · object*. The object is what an independent client found in it right after the outcome:

- *A 2*: A is the holder, under fencing token 2. *free 2*: no holder; 2 was the last token. *absent*: there is no object.
- *free 1, then A 2*: a write was committed after the outcome. *free 1 or A 2*: either may happen, depending on who is faster.
- *A 3*, after "another life under A's name": where A was granted it holds by its own new write, else the other life is the holder.
- *operator*: a holder that somebody wrote by hand.

Times here: heartbeat-timeout %v, heartbeat-interval %v, lease-operation-timeout %v, %v for one request. A holder trusts one heartbeat
for %v.

The test checks in all %d cells, besides what the table says:

- A and B never hold the lease at the same instant, tokens only grow, and no token is given to both.
- *granted* is said only if the object then names A, with the mark of that very attempt. *held* is said only of an attempt that has not
  won, and it never wins later.
- As long as A holds the lease B does not get it, however often it tries. Once A does not, B gets it although A's fault goes on: at the
  latest when the holder has been silent for heartbeat-timeout. When the fault is over A works again without a restart.
- A write that was committed although A could not know it is found by its mark: A's next ` + "`Acquire`" + ` adopts it, or else A frees
  the object.
- Where the fault says *after the commit*, the API server has really written; where it says *lost* or *before*, it never saw the
  request; where it says *after the client gave up*, it got the request only after the call was over.

401, 403, 429, 500 and 503 are said by something on the way, in the API server's words, before it has seen the request; so is a 409 to a
read or to a watch, which the API server does not know. The 403 of a withdrawn right, the 404 of a deleted object and the 409 to a write
are the API server's own.

To reproduce it: ` + "`go test ./lease/kubernetes -run TestFault`" + ` (the first time it builds a kube-apiserver and an etcd).
`

const acquireHead = `A calls ` + "`Acquire`" + `. It *reads* the object, and then *creates* it, or *updates* the one that is free under token 1.

- **granted**: A holds the lease.
- **held by B**: for certain A got nothing, and never will by this call.
- **unknown**: nobody can say. A does not hold the lease (` + "`Check`" + ` is false). Ask again: if the write did take place the next ` + "`Acquire`" + ` finds
  and adopts it. If nobody asks again A's lease frees the object as soon as it can; if it cannot, the others wait for heartbeat-timeout.
- **unknown (refused)**: as unknown, but the API server has said no, so this write was not made. Repeating it does not help: see to
  the rights.

`

const holdHead = `A holds the lease under token 2. Its *heartbeat* is struck, or its *release*; or else A *watches* the lease, which B holds under token 2,
and the watch breaks and is struck when it opens again, while B takes the lease anew.

- **kept**: A goes on holding. **lost**: A is told so, once, and ` + "`Check`" + ` is false, before anybody else can have the lease.
- **released**: for certain A is the holder no more. **not-released**: there was nothing to release, A had lost the lease already.
  **unknown**: the object may still name A. ` + "`Check`" + ` is false since before the request was sent, whatever becomes of it.
- **catches up**: A sees B's news although the fault goes on. **blind until healed**: it sees them when the fault is over. Either way it
  never goes back to an older state, and ends on the newest.

`

const faultsTail = `
## What to make of it

- A fault of a single request costs nothing but time: it is repeated within lease-operation-timeout, and a heartbeat within the time that
  the holder trusts the last one. The exceptions are a 403, which is an answer and not a fault, and a dead connection, which is noticed after
  three seconds: more than the whole call here, less than the default of five.
- A store that stays away costs the lease, not the safety: the holder gives it up before anybody else can get it.
- An object that is deleted takes its token with it. Parties that have seen the token go on above it; one that has not begins anew. So do
  not delete the object to free it: clear its ` + "`holderIdentity`" + `.
`
