package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/process"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
)

// server is a running PostgreSQL.
type server struct {
	thread       *process.Thread
	folder, data string
	port         int
	fsync        string
	standby      *server // nil: it has none
	process      *process.Process
}

// programs is the folder with the programs of the server: that of $SBR_POSTGRES_BIN, or of the newest Debian package.
func programs(t testing.TB) string {
	t.Helper()
	if folder := os.Getenv("SBR_POSTGRES_BIN"); folder != "" {
		return folder
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	require.NoError(t, err)
	require.NotEmpty(t, found, "no PostgreSQL: run make postgres (Debian, as root), or set SBR_POSTGRES_BIN to the folder with initdb")
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })) // 9 < 15
}

// startTries is how often a server is started whose port somebody else took.
const startTries = 5

// newServer starts a server, which ends with the test. Everybody on this machine may connect as anybody.
func newServer(t testing.TB) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a real server")
	}
	s := newFolder(t)
	s.run(t, "initdb", "--pgdata="+s.data, "--username=owner", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	s.startSomewhere(t)
	return s
}

// newFolder makes a place for a server that the user of the server can write to.
func newFolder(t testing.TB) *server {
	t.Helper()
	folder, err := os.MkdirTemp("", "pg") //nolint:usetesting // short: the path of a socket is
	require.NoError(t, err)
	s := &server{thread: process.NewThread(), folder: folder, data: filepath.Join(folder, "data"), fsync: "off"}
	t.Cleanup(func() {
		s.process.Kill()
		s.thread.Close()
		_ = os.RemoveAll(folder)
	})
	if os.Getuid() == 0 {
		account, err := user.Lookup("nobody")
		require.NoError(t, err)
		id, err := strconv.Atoi(account.Uid)
		require.NoError(t, err)
		require.NoError(t, os.Chown(folder, id, -1))
	}
	return s
}

// command is a program of the server's; it refuses to run as root, so that then nobody runs it.
func (s *server) command(t testing.TB, program string, args ...string) process.Command {
	t.Helper()
	c := process.Command{
		Name: program, Program: filepath.Join(programs(t), program), Args: args, Dir: s.folder, Log: filepath.Join(s.folder, "log"),
	}
	if os.Getuid() == 0 {
		setpriv, err := exec.LookPath("setpriv") // of util-linux; another user forgets the signal of a dead parent
		require.NoError(t, err)
		c.Args = append([]string{"--reuid=nobody", "--clear-groups", "--pdeathsig=KILL", c.Program}, args...)
		c.Program = setpriv
	}
	return c
}

// run runs a program of the server's to its end.
func (s *server) run(t testing.TB, program string, args ...string) {
	t.Helper()
	p, err := process.Start(s.thread, s.command(t, program, args...))
	require.NoError(t, err)
	end, err := p.Wait(t.Context())
	require.NoError(t, err)
	require.Zero(t, end.Code, "%s: %s", program, p.Log())
}

func (s *server) startSomewhere(t testing.TB) {
	t.Helper()
	for try := 1; ; try++ {
		s.port = freePort(t)
		s.start(t)
		err := s.healthy(t)
		if err == nil {
			return
		}
		s.process.Kill()
		require.Less(t, try, startTries, "%v", err)
	}
}

// start starts the server with the data that it had.
func (s *server) start(t testing.TB) {
	t.Helper()
	var err error
	s.process, err = process.Start(s.thread, s.command(t, "postgres", "-D", s.data, "-k", s.folder, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync="+s.fsync, "-c", "wal_level=replica", "-c", "shared_buffers=16MB", "-c", "max_connections=300"))
	require.NoError(t, err)
}

// addStandby gives the server a standby, which confirms each write before it is acknowledged if it is synchronous.
func (s *server) addStandby(t testing.TB, synchronous bool) {
	t.Helper()
	s.standby = newFolder(t)
	s.standby.run(t, "pg_basebackup", "--pgdata="+s.standby.data, "--dbname="+s.url("owner", "postgres"), "--checkpoint=fast",
		"--wal-method=stream", "--write-recovery-conf", "--no-sync")
	s.standby.startSomewhere(t)
	if synchronous {
		s.set(t, "synchronous_standby_names", "*")
	}
}

// failover kills the server, and makes its standby the primary.
func (s *server) failover(t testing.TB) {
	t.Helper()
	s.process.Kill()
	s.standby.sql(t, "postgres", "SELECT pg_promote()")
}

// set changes a setting of the running server.
func (s *server) set(t testing.TB, name, value string) {
	t.Helper()
	s.sql(t, "postgres", "ALTER SYSTEM SET "+name+" = '"+value+"'")
	s.sql(t, "postgres", "SELECT pg_reload_conf()")
	s.until(t, "postgres", "SELECT current_setting('"+name+"') = '"+value+"'")
}

// until waits for a condition.
func (s *server) until(t testing.TB, database, condition string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.url("owner", database))
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	require.Eventually(t, func() (is bool) {
		require.NoError(t, c.QueryRow(t.Context(), condition).Scan(&is))
		return is
	}, 30*time.Second, 5*time.Millisecond, condition)
}

// durable has it write to the disk before it answers, as in production.
func (s *server) durable(t testing.TB) {
	t.Helper()
	s.fsync = "on"
	s.restart(t)
}

// restart ends it as abruptly as it can happen.
func (s *server) restart(t testing.TB) {
	t.Helper()
	s.process.Kill()
	for try := 1; ; try++ { // what served the connections ends a moment later, and until then nobody else may start
		s.start(t)
		err := s.healthy(t)
		if err == nil {
			return
		}
		s.process.Kill()
		require.Less(t, try, 100*startTries, "%v", err)
	}
}

// healthy waits until the server answers.
func (s *server) healthy(t testing.TB) error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		c, err := pgx.Connect(ctx, s.url("owner", "postgres"))
		if err == nil {
			err = errors.Join(c.Ping(ctx), c.Close(ctx))
		}
		cancel()
		if err != nil && !s.process.Alive() {
			return fmt.Errorf("the server ended: %s", s.process.LastLogLine())
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// url is where the server is, and its standby.
func (s *server) url(role, database string) string {
	hosts := fmt.Sprintf("127.0.0.1:%d", s.port)
	if s.standby != nil && s.standby.port != 0 {
		hosts += fmt.Sprintf(",127.0.0.1:%d", s.standby.port)
	}
	return "postgres://" + role + "@" + hosts + "/" + database
}

// sql runs statements as the owner of everything.
func (s *server) sql(t testing.TB, database, statements string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.url("owner", database))
	require.NoError(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	_, err = c.Exec(t.Context(), statements)
	require.NoError(t, err, statements)
}

// database makes a database with the table, and the role sbr with its rights.
func (s *server) database(t testing.TB) string {
	t.Helper()
	name := "d" + strings.ToLower(strconv.FormatUint(rand.Uint64(), 36))
	s.sql(t, "postgres", "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sbr') THEN CREATE ROLE sbr LOGIN; END IF; END $$")
	s.sql(t, "postgres", "CREATE DATABASE "+name)
	s.sql(t, name, postgres.Schema("", "sbr"))
	return name
}

// pool returns a pool of the role sbr, which ends with the test.
func (s *server) pool(t testing.TB, database string) *pgxpool.Pool {
	t.Helper()
	return newPool(t, s.url("sbr", database))
}

func newPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	c, err := postgres.Config(url, 5*time.Second)
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// store returns the store of payments-sbr over a pool of its own.
func (s *server) store(t testing.TB, database string) *postgres.Store {
	t.Helper()
	store, err := postgres.New(s.pool(t, database), "", "payments-sbr")
	require.NoError(t, err)
	return store
}

// freePort returns a port on loopback that nobody listens on, from below the ephemeral range.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no free port")
	return 0
}
