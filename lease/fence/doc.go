// Package fence is what keeps a paused owner from doing harm: each owner sends a number that grows with every
// owner, the fencing token, and the resource refuses a smaller one than it has accepted.
//
// No lock can do that. Between the owner's look at its lease and its write it can be paused (a garbage
// collection, a stopped virtual machine, a packet that hangs) for longer than the lease lasts. It does not
// know, and a write that is on its way cannot be called back. Only the resource sees both writes.
//
// At the resource:
//
//	file, err := fence.OpenFile("/var/lib/orders/fence")
//	f, err := fence.Open(file)
//	err = f.Do(ctx, token, func() error { return write(row) }) // wraps ErrStale: nothing was written
//
//	http.Handle("/orders", fence.Handler(f, orders)) // the same for HTTP: 412 for a stale token, 428 without one
//
// At the owner, which holds a lease l:
//
//	client := &http.Client{Transport: &fence.Transport{Source: fence.Of(l)}}
//
// In a database the check belongs into the transaction of the work; Admit is its first statement:
//
//	tx, err := db.BeginTx(ctx, nil)
//	err = fence.Admit(ctx, tx, fence.SQLite, "orders", token) // wraps ErrStale: roll back
//	_, err = tx.ExecContext(ctx, "UPDATE orders SET …")
//	err = tx.Commit()
//
// Where each row has one owner at a time, the token can be a column of that row, and one statement is all. No
// row changed means that the token is stale:
//
//	UPDATE orders SET state = ?, token = ? WHERE id = ? AND token <= ?
//
// # Tokens
//
// A token is a uint64 from 1 to Max, as lease.Lease.Token and the runs of a singleton have them. Zero is no
// token. As text it is a decimal number without sign and leading zeros. Max is the largest BIGINT of SQL.
//
// A token belongs to a run, not to a process: take it when the run begins and send that token (WithToken). A
// run that asks for the token at the time of the write can get that of the process's next run, and fences
// nothing.
//
// A new owner that reads before it writes raises the fence first (Check, or a GET that carries its token):
// then nothing of its predecessor can come in between.
//
// # Guarantees
//
//   - Effects run by Do, one at a time and in an order in which tokens never get smaller, for any number of
//     goroutines. When an effect with a token has begun, none with a smaller one begins or goes on.
//   - With a Storage that holds also across restarts: a token is saved before its first effect begins, once
//     in each life of the Fence. A token that cannot be saved is not admitted.
//   - File survives a crash at any point: it holds the old token or the new one. What is not a token is an
//     error that names the file, never token zero. A second process that opens it is refused with ErrInUse
//     (Unix).
//   - Handler runs the next handler inside Do. It reads the request before and sends the answer after, so a
//     client that stalls in the middle of a request or an answer keeps no other request out.
//   - Transport sends nothing without a token, and nothing whose token is not the one of the present run.
//   - Admit decides in the transaction: it commits with the work, or neither does.
//
// # Non-guarantees
//
//   - A check before a write that is not atomic with it is no fence. Check says what was true when it
//     returned; the write after it can be paused as well as any other. Use it to refuse early or to raise the
//     fence, and Do, Handler, Admit or the one statement for the write.
//   - An effect that goes on in another goroutine, or that the other side carries out later (a queue, a
//     mail), is not covered.
//   - A fence knows the tokens it was shown. Until the new owner has shown its token, the former owner's is
//     the largest, and is accepted.
//   - A Fence without Storage forgets with its process, a file on tmpfs with its machine. A removed file has
//     forgotten, and so has an older copy of it, or of a database, that is put back.
//   - It is no authentication: a writer can send a large token, and shut all others out.
//   - An effect that hangs keeps all others out; waiting callers give up with their contexts.
//   - On Windows and other systems that are not Unix two processes can open one File, and the last token can
//     be lost with the power.
//
// # Assumptions
//
//   - All writers to the resource send tokens of one sequence, and go through its one fence. A resource with
//     two doors needs one Fence behind both.
//   - Tokens grow with each owner. Those of one lease do; those of two leases must not be mixed.
//   - A File is on a local disk that keeps what it has acknowledged, is opened under one path, and its
//     PATH.lock is left where it is.
package fence
