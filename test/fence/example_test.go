package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// write is one piece of work: the fence and the change are one transaction.
func write(ctx context.Context, db *sql.DB, token uint64, text string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := fence.Admit(ctx, tx, fence.SQLite, "orders", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = ? WHERE id = 1", text); err != nil {
		return err
	}
	return tx.Commit()
}

// Writer a looks at its lease and is paused. The lease runs out, b takes over and writes. Then a goes on,
// with its write.
func Example_pausedWriter() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:orders?mode=memory&cache=shared")
	if err != nil {
		panic(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(fence.Table + "; CREATE TABLE orders (id INTEGER, state TEXT); INSERT INTO orders VALUES (1, 'new')"); err != nil {
		panic(err)
	}
	store := leasetest.NewMemory()
	a, b := openLease(store, "a"), openLease(store, "b")
	defer a.Close()
	defer b.Close()

	_, _ = a.AcquireWait(ctx, lease.Proposal{})
	token := a.Token()
	fmt.Println("a holds the lease:", a.Check(), token)

	store.View("a").SetUnavailable(true)        // a is paused: nothing is heard of it
	_, _ = b.AcquireWait(ctx, lease.Proposal{}) // returns when a's lease has run out
	fmt.Println("b writes:", b.Token(), write(ctx, db, b.Token(), "paid"))

	err = write(ctx, db, token, "cancelled") // a goes on where it stopped
	fmt.Println("a writes:", token, errors.Is(err, fence.ErrStale))
	var state string
	err = db.QueryRow("SELECT state FROM orders WHERE id = 1").Scan(&state)
	fmt.Println(state, err)
	// Output:
	// a holds the lease: true 1
	// b writes: 2 <nil>
	// a writes: 1 true
	// paid <nil>
}

// openLease returns owner's lease, with times short enough for an example.
func openLease(store *leasetest.Memory, owner string) *lease.Lease {
	times := lease.Settings{HeartbeatTimeout: 2 * time.Second, HeartbeatInterval: 200 * time.Millisecond, OperationTimeout: 200 * time.Millisecond}
	l, err := lease.New(store.View(owner), owner, times, lease.Options{})
	if err != nil {
		panic(err)
	}
	return l
}
