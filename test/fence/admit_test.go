package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease/fence"
)

var errRollback = errors.New("the work failed")

// openDB opens the database at path, which processes may share.
func openDB(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(30000)")
}

// newDB is a database with a fence and a journal of the tokens whose work was done.
func newDB(t *testing.T) *sql.DB {
	db, err := openDB(filepath.Join(t.TempDir(), "orders.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec(fence.Table +
		"; CREATE TABLE journal (id INTEGER PRIMARY KEY, resource TEXT, token BIGINT)")
	require.NoError(t, err)
	return db
}

// work admits the token, writes one line of the journal, and commits unless result is an error.
func work(ctx context.Context, db *sql.DB, d fence.Dialect, resource string, token uint64,
	result error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := fence.Admit(ctx, tx, d, resource, token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO journal (resource, token) VALUES (?, ?)", resource,
		int64(token)); err != nil {
		return err
	}
	if result != nil {
		return result
	}
	return tx.Commit()
}

// journal returns the tokens whose work was committed for resource, in order.
func journal(t require.TestingT, db *sql.DB, resource string) (tokens []uint64) {
	rows, err := db.Query("SELECT token FROM journal WHERE resource = ? ORDER BY id", resource)
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var token uint64
		require.NoError(t, rows.Scan(&token))
		tokens = append(tokens, token)
	}
	require.NoError(t, rows.Err())
	return tokens
}

// SQLite understands the placeholders of both dialects.
func TestAdmit_Rules(t *testing.T) {
	for name, d := range map[string]fence.Dialect{"sqlite": fence.SQLite, "postgresql": fence.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			for _, step := range []struct {
				resource string
				token    uint64
				result   error
				want     error
				newest   uint64 // of the resource, if stale
			}{
				{"orders", 3, nil, nil, 0},
				{"orders", 3, nil, nil, 0},
				{"orders", 2, nil, fence.ErrStale, 3},
				{"orders", 0, nil, fence.ErrToken, 0},
				{"orders", fence.Max + 1, nil, fence.ErrToken, 0},
				{"stock", 1, nil, nil, 0}, // another resource
				{"orders", 9, errRollback, errRollback, 0},
				{"orders", 4, nil, nil, 0}, // 9 was rolled back with its work
				{"orders", 3, nil, fence.ErrStale, 4},
				{"orders", fence.Max, nil, nil, 0},
				{"orders", fence.Max - 1, nil, fence.ErrStale, fence.Max},
			} {
				err := work(t.Context(), db, d, step.resource, step.token, step.result)
				require.ErrorIs(t, err, step.want, "token %d", step.token)
				if step.want == nil {
					require.NoError(t, err)
				}
				if stale, ok := errors.AsType[*fence.StaleError](err); ok {
					require.Equal(t, fence.StaleError{Token: step.token, Newest: step.newest}, *stale)
				}
			}
			require.Equal(t, []uint64{3, 3, 4, fence.Max}, journal(t, db, "orders"))
			require.Equal(t, []uint64{1}, journal(t, db, "stock"))
		})
	}
}

func TestAdmit_WithoutItsTableIsAnError(t *testing.T) {
	db, err := openDB(filepath.Join(t.TempDir(), "empty.db"))
	require.NoError(t, err)
	defer db.Close()
	err = work(t.Context(), db, fence.SQLite, "orders", 1, nil)
	require.ErrorContains(t, err, `fence: admit token 1 for "orders"`)
	require.NotErrorIs(t, err, fence.ErrStale)
	require.ErrorContains(t, work(t.Context(), db, fence.Dialect{}, "orders", 1, nil),
		"use SQLite or PostgreSQL")
}

// Admit against a Fence in memory, which has its own twin.
func TestProperty_AdmitIsAFence(t *testing.T) {
	db := newDB(t)
	var round int
	rapid.Check(t, func(t *rapid.T) {
		round++
		resource, twin := "r"+fence.Format(uint64(round)), fence.New()
		var done []uint64
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			token := rapid.OneOf(rapid.Uint64Range(0, 5),
				rapid.SampledFrom([]uint64{fence.Max - 1, fence.Max, fence.Max + 1})).Draw(t, "token")
			got := work(context.Background(), db, fence.SQLite, resource, token, nil)
			require.Equal(t, twin.Check(context.Background(), token), got)
			if got == nil {
				done = append(done, token)
			}
		}
		require.Equal(t, done, journal(t, db, resource))
	})
}

// Many writers with a connection each: what was committed is in order.
func TestAdmit_ManyAtOnce(t *testing.T) {
	const writers, tries = 4, 25
	db := newDB(t)
	var mu sync.Mutex
	committed := 0
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(writer), 1))
			for i := range tries {
				err := work(context.Background(), db, fence.SQLite, "orders", uint64(i+1+random.IntN(6)), nil)
				if err == nil {
					mu.Lock()
					committed++
					mu.Unlock()
				} else if !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	tokens := journal(t, db, "orders")
	require.Len(t, tokens, committed)
	require.NotEmpty(t, tokens)
	require.IsNonDecreasing(t, tokens)
}

// The one statement of the package's documentation, for a row that has its own token.
func TestOneStatement(t *testing.T) {
	db := newDB(t)
	_, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, token BIGINT NOT NULL); INSERT INTO orders VALUES (1, 'new', 0)")
	require.NoError(t, err)
	for _, step := range []struct {
		token   int64
		state   string
		changed int64
	}{{1, "a began", 1}, {1, "a went on", 1}, {2, "b was here", 1}, {1, "a woke up", 0}, {2, "b went on", 1}} {
		done, err := db.Exec("UPDATE orders SET state = ?, token = ? WHERE id = ? AND token <= ?", step.state,
			step.token, 1, step.token)
		require.NoError(t, err)
		changed, err := done.RowsAffected()
		require.NoError(t, err)
		require.Equal(t, step.changed, changed, step.state)
	}
	var state string
	require.NoError(t, db.QueryRow("SELECT state FROM orders").Scan(&state))
	require.Equal(t, "b went on", state)
}
