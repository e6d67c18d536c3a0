package postgres_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func (s *server) harness(t testing.TB) leasetest.Harness {
	database := s.database(t)
	return leasetest.Harness{
		Open:   func(t testing.TB, _ string) lease.Store { return s.store(t, database) },
		Delete: func(t testing.TB) { s.sql(t, database, "DELETE FROM sbr_lease") },
	}
}

func TestConformance(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *server{"installed": newServer, "newest": newest} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			leasetest.Run(t, func(t *testing.T) leasetest.Harness {
				h := s.harness(t)
				h.Interrupt = s.restart
				return h
			})
		})
	}
}

// The primary is killed in the middle, and its synchronous standby is promoted: what was answered before is
// not forgotten.
func TestConformance_Failover(t *testing.T) {
	s := newServer(t)
	s.addStandby(t, true)
	leasetest.RunLease(t, func(t *testing.T) leasetest.Harness {
		h := s.harness(t)
		h.Failover = s.failover
		return h
	})
}

// A failover to a standby that has not got a write forgets it, although it was acknowledged. sbr lease doctor
// warns of that.
func TestFailover_OfAnAsynchronousStandbyLosesWrites(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	s.addStandby(t, false)
	store := s.store(t, database)
	first, err := store.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, "")
	require.NoError(t, err)
	s.until(t, "postgres", "SELECT pg_current_wal_lsn() = replay_lsn FROM pg_stat_replication")
	risks, err := store.Risks(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(risks, "\n"),
		"the standbys are asynchronous: a failover loses acknowledged writes")
	s.standby.Kill()
	_, err = store.Write(t.Context(), lease.Record{Holder: "b", Token: 2}, first)
	require.NoError(t, err, "acknowledged")

	s.Kill()
	require.NoError(t, s.standby.Start(t.Context()))
	s.standby.sql(t, "postgres", "SELECT pg_promote()")
	got, err := s.store(t, database).Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, first, got.Version, "and lost")
}

// While the wait for the standby is broken off, the server commits, and warns: the outcome is unknown.
func TestWrite_WithoutTheStandbyIsUnknown(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	store := s.store(t, database)
	s.set(t, "synchronous_standby_names", "absent")
	done := make(chan error)
	go func() {
		_, err := store.Write(context.WithoutCancel(t.Context()), lease.Record{Holder: "a", Token: 1}, "")
		done <- err
	}()
	s.until(t, database, "SELECT coalesce(bool_or(pg_cancel_backend(pid)), false) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	err := <-done
	require.ErrorContains(t, err, "the server warned: canceling wait for synchronous replication")
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrConflict)
}

// Nobody sees a write that its client has given up before the standby has it: a failover may still lose it, and a
// member that has read a verdict acts on it.
func TestWrite_GivenUpIsNotSeenBeforeTheStandbyHasIt(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	other, pool := s.store(t, database), s.pool(t, database)
	store, err := postgres.New(pool, "", "payments-sbr")
	require.NoError(t, err)
	first, err := store.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, "")
	require.NoError(t, err)
	s.set(t, "synchronous_standby_names", "absent")
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := store.Write(ctx, lease.Record{Holder: "b", Token: 2}, first)
		done <- err
	}()
	s.until(t, database, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	giveUp()
	err = <-done
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.Eventually(t, func() bool { return pool.Stat().TotalConns() == 0 }, 30*time.Second,
		5*time.Millisecond,
		"the connection is not closed")
	_, err = other.Write(t.Context(), lease.Record{Holder: "c", Token: 2}, first)
	require.ErrorIs(t, err, lease.ErrConflict, "a write waits for the one before it: tries pile up in the server")
	for range 100 { // a cancellation would have an effect a moment after it was sent
		got, err := other.Read(t.Context())
		require.NoError(t, err)
		require.Equal(t, first, got.Version, "a write that may be lost was seen")
	}
	s.set(t, "synchronous_standby_names", "")
	require.Eventually(t, func() bool {
		got, err := other.Read(t.Context())
		return err == nil && got.Record.Holder == "b"
	}, 30*time.Second, 5*time.Millisecond, "it was written")
}

// A limit of the server is a cancellation, too.
func TestRisks_ATimeOutEndsTheWaitForTheStandby(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	s.set(t, "synchronous_standby_names", "absent")
	const risk = "ends the wait for a standby"
	risks, err := s.store(t, database).Risks(t.Context())
	require.NoError(t, err)
	require.NotContains(t, strings.Join(risks, "\n"), risk)
	s.sql(t, "postgres", "SET synchronous_commit = off; ALTER ROLE sbr SET statement_timeout = '1min'")
	risks, err = s.store(t, database).Risks(t.Context())
	require.NoError(t, err)
	require.Contains(t, strings.Join(risks, "\n"), risk)
}

// Another transaction was faster: under the stricter levels of isolation the server says so by an error.
func TestWrite_SerializationFailureIsAConflict(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	s.sql(t, "postgres", "ALTER ROLE sbr SET default_transaction_isolation = 'repeatable read'")
	store := s.store(t, database)
	other, err := newPool(t, s.URL("owner", database)).Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "INSERT INTO sbr_lease VALUES ('payments-sbr', 'by hand', '{}')")
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := store.Write(context.WithoutCancel(t.Context()), lease.Record{Holder: "b", Token: 2}, "")
		done <- err
	}()
	s.until(t, database, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
	require.NoError(t, other.Commit(t.Context()))
	require.ErrorIs(t, <-done, lease.ErrConflict)
}

// A person reads the row, and may repair it, with another version.
func TestRow_IsForPeople(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	store := s.store(t, database)
	version, err := store.Write(t.Context(), lease.Record{
		Holder: "n1#a", Token: 7, TTL: 2 * time.Minute,
		Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"n1#a"}, Down: []sbr.ID{"n2#b"}, DecidedBy: "n1#a",
			Reason: "n2 is cut off"},
	}, "")
	require.NoError(t, err)
	s.until(t, database, `SELECT record->>'holder' = 'n1#a' AND (record->>'token')::int = 7 AND
		record#>>'{verdict,reason}' = 'n2 is cut off' FROM sbr_lease WHERE name = 'payments-sbr'`)

	s.sql(t, database, `UPDATE sbr_lease SET version = 'by hand', record = jsonb_set(record, '{holder}', '"n2#b"')`)
	_, err = store.Write(t.Context(), lease.Record{Token: 8}, version)
	require.ErrorIs(t, err, lease.ErrConflict)
	got, err := store.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "n2#b", got.Record.Holder)
	s.sql(t, database, `UPDATE sbr_lease SET record = record || '{"holdr": "n1#a"}'`)
	_, err = store.Read(t.Context())
	require.ErrorIs(t, err, lease.ErrRefused)
	assert.ErrorContains(t, err,
		`sbr_lease/payments-sbr: the store refused the request: the row is not the record of a lease: `+
			`the field "holdr" is unknown`)
}

// What is taken away is refused with a sentence, by a write and by the preflight, which changes nothing.
func TestRefusals(t *testing.T) {
	s := newServer(t)
	for _, tc := range []struct{ name, before, says string }{
		{"the table", "DROP TABLE sbr_lease", "there is no such table: sbr manifests --store postgres prints what makes it"},
		{"the right to insert", "REVOKE INSERT ON sbr_lease FROM sbr", "permission denied for table sbr_lease"},
		{"the right to update", "REVOKE UPDATE ON sbr_lease FROM sbr", "permission denied for table sbr_lease"},
		{"the right to read", "REVOKE SELECT ON sbr_lease FROM sbr", "permission denied for table sbr_lease"},
		{"the right to connect", "ALTER ROLE sbr NOLOGIN", `role "sbr" is not permitted to log in`},
		{"writes", "ALTER ROLE sbr LOGIN; ALTER ROLE sbr SET default_transaction_read_only = on", "the server is read-only, as a standby is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			database := s.database(t)
			s.sql(t, database, tc.before)
			store := s.store(t, database)
			err := lease.Preflight(t.Context(), store)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, tc.says)
			prev := lease.Version("x") // an update, which reads as well
			if tc.name == "the right to insert" {
				prev = ""
			}
			_, err = store.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, prev)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// A standby may be behind, and takes no writes.
func TestStandby_IsRefused(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	s.addStandby(t, true) // so that it has the database
	one, err := s.store(t, database).Identity(t.Context())
	require.NoError(t, err)
	store := s.standby.store(t, database)
	same, err := store.Identity(t.Context())
	require.NoError(t, err)
	assert.Equal(t, one, same, "a standby is the same store")
	for what, err := range map[string]error{
		"read":      func() error { _, err := store.Read(t.Context()); return err }(),
		"write":     func() error { _, err := store.Write(t.Context(), lease.Record{Token: 1}, ""); return err }(),
		"watch":     store.Watch(t.Context(), func(lease.Snapshot) {}),
		"preflight": lease.Preflight(t.Context(), store),
	} {
		assert.ErrorIs(t, err, lease.ErrRefused, what)
		assert.ErrorContains(t, err, "name the primary, or all servers", what)
	}
}

func TestIdentity_TellsStoresApart(t *testing.T) {
	s, other := newServer(t), newServer(t)
	seen := map[string]bool{}
	for _, store := range []*postgres.Store{s.store(t, s.database(t)), s.store(t, s.database(t)),
		other.store(t, other.database(t))} {
		id, err := store.Identity(t.Context())
		require.NoError(t, err)
		seen[id] = true
	}
	require.Len(t, seen, 3)
}

// A process with many leases has three connections: two of a pool, and one for listening.
func TestFactory_StoresShareTheirConnections(t *testing.T) {
	s := newServer(t)
	database := s.database(t)
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(s.URL("sbr", database)+"\n"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string)
	ended := make(chan error)
	var stores []*postgres.Store
	for i, set := range []map[string]string{{"url-file": file}, {"url-file": file},
		{"url-file": file, "table": "public.sbr_lease"}} {
		store, err := open(t, string(rune('a'+i)), set)
		require.NoError(t, err)
		stores = append(stores, store)
		go func() {
			ended <- store.Watch(ctx, func(now lease.Snapshot) { heard <- store.String() + " " + now.Record.Holder })
		}()
	}
	seen := func() (all []string) {
		for range stores {
			all = append(all, <-heard)
		}
		return all
	}
	require.ElementsMatch(t, []string{"sbr_lease/a ", "sbr_lease/b ", "public.sbr_lease/c "}, seen())
	for i, store := range stores {
		_, err := store.Write(t.Context(), lease.Record{Holder: "n" + string(rune('a'+i)), Token: 1}, "")
		require.NoError(t, err)
	}
	require.ElementsMatch(t, []string{"sbr_lease/a na", "sbr_lease/b nb", "public.sbr_lease/c nc"}, seen())
	s.until(t, database, "SELECT count(*) <= 3 FROM pg_stat_activity WHERE application_name = 'serf-sbr'")
	s.until(t, database, "SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
	cancel()
	for _, store := range stores {
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, store.Close())
		require.NoError(t, store.Close(), "twice does no harm")
	}
	s.until(t, database, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'serf-sbr'")
}

func TestFactory_SaysWhatIsWrong(t *testing.T) {
	for says, set := range map[string]map[string]string{
		"set lease.postgres.url-file": {},
		"url-file are set":            {"url": "postgres://sbr:secret@db", "url-file": "x"},
		"url-file: open":              {"url-file": filepath.Join(t.TempDir(), "x")},
		"is not valid":                {"url": "postgres://sbr:secret@db:x/y"},
		"must not contain":            {"url": "postgres://sbr:secret@db", "table": "a\x00b"},
	} {
		_, err := open(t, "x", set)
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func open(t *testing.T, name string, set map[string]string) (*postgres.Store, error) {
	t.Helper()
	opened, err := lease.Open(t.Context(), postgres.Key,
		lease.Spec{System: "payments", Name: name, Decode: func(into any) error {
			text, err := json.Marshal(set)
			require.NoError(t, err)
			return json.Unmarshal(text, into)
		}})
	if err != nil {
		return nil, err
	}
	return opened.(*postgres.Store), nil
}

// The blocks of bash in docs/stores.md, one after another in an empty folder: from an empty database to a
// cluster that a partition leaves one side of.
func TestPage(t *testing.T) {
	s, bin, folder := newServer(t), t.TempDir(), t.TempDir()
	for module, program := range map[string]string{"../..": "./cmd/sbr",
		"../serfagent": "github.com/hashicorp/serf/cmd/serf"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-o", bin+"/",
			program).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	page, err := os.ReadFile("../../docs/stores.md")
	require.NoError(t, err)
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```bash\n(.*?)^```$").FindAllStringSubmatch(string(page),
		-1) {
		script.WriteString(block[1])
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", script.String())
	if os.Geteuid() == 0 { // else the processes of a failed run may outlive it
		c = exec.CommandContext(ctx, "unshare", append([]string{"--fork", "--kill-child", "--pid", "--mount-proc"},
			c.Args...)...)
	}
	c.Dir, c.WaitDelay = folder, time.Second
	_, port, err := net.SplitHostPort(s.Address())
	require.NoError(t, err)
	c.Env = append(os.Environ(), "PATH="+strings.Join([]string{bin, s.Programs, os.Getenv("PATH")},
		string(os.PathListSeparator)),
		"PGHOST=127.0.0.1", "PGPORT="+port, "PGUSER=owner", "PGDATABASE=postgres", "SBR_POSTGRES_URL="+s.URL("sbr", "postgres"))
	out, err := c.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(folder, "*.log"))
		for _, l := range logs {
			text, _ := os.ReadFile(l)
			t.Logf("%s:\n%s", filepath.Base(l), text)
		}
	}
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "2 of 3 counted members are reachable, a majority")
}

// TestScript runs the program over a server without a table. OWNER may do everything, MEMBER may log in once
// it exists.
func TestScript(t *testing.T) {
	s := newServer(t)
	bin := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", bin+"/",
		"./cmd/sbr").CombinedOutput()
	require.NoError(t, err, string(out))
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+s.Programs+string(os.PathListSeparator)+
				env.Getenv("PATH"))
			env.Setenv("OWNER", s.URL("owner", "postgres"))
			env.Setenv("MEMBER", s.URL("sbr", "postgres"))
			return os.WriteFile(filepath.Join(env.WorkDir, "url"), []byte(s.URL("sbr", "postgres")+"\n"), 0o600)
		},
	})
}
