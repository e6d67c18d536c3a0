package servers

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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// Postgres is a server of PostgreSQL, from the programs of $SBR_POSTGRES_BIN or of the newest Debian package.
type Postgres struct {
	Server
	// Programs is the folder with its programs.
	Programs string
	// Fsync is on where it writes to the disk before it answers, as in production; off at first.
	Fsync string
	// Standby is that of Copy; nil: there is none.
	Standby *Postgres
	folder  string
	log     string
}

// NewPostgres makes a place for a server that the user of the server can write to. An empty log is a file
// there. Init or Copy makes it one.
func NewPostgres(p Place, log string) (*Postgres, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "pg") // short: the path of a socket is
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	s := &Postgres{Programs: programs, Fsync: "off", folder: folder,
		log: cmp.Or(log, filepath.Join(folder, "log"))}
	s.Place, s.Command, s.Ping = p, s.serve, s.ping
	if os.Getuid() == 0 {
		account, err := user.Lookup("nobody")
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		id, err := strconv.Atoi(account.Uid)
		if err == nil {
			err = os.Chown(folder, id, -1)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends the server and removes its data.
func (s *Postgres) Close() error {
	s.Kill()
	return os.RemoveAll(s.folder)
}

func (s *Postgres) data() string { return filepath.Join(s.folder, "data") }

// findPrograms returns the folder with the programs of the server.
func findPrograms() (string, error) {
	if folder := os.Getenv("SBR_POSTGRES_BIN"); folder != "" {
		return folder, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) == 0 {
		err = errors.New("no PostgreSQL: run make postgres (Debian, as root), " +
			"or set SBR_POSTGRES_BIN to the folder with initdb")
	}
	if err != nil {
		return "", fmt.Errorf("servers: %w", err)
	}
	// 9 < 15
	newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), cmp.Compare(a, b)) })
	return filepath.Dir(newest), nil
}

// program is one of the server's; it refuses to run as root, so that then nobody runs it.
func (s *Postgres) program(name string, args ...string) (process.Command, error) {
	c := process.Command{Name: name, Program: filepath.Join(s.Programs, name), Args: args, Dir: s.folder}
	c.Log = s.log
	if os.Getuid() != 0 {
		return c, nil
	}
	// Of util-linux; another user forgets the signal of a dead parent.
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return c, fmt.Errorf("servers: %w", err)
	}
	c.Args = append([]string{"--reuid=nobody", "--clear-groups", "--pdeathsig=KILL", c.Program}, args...)
	c.Program = setpriv
	return c, nil
}

// run runs a program of the server's to its end.
func (s *Postgres) run(ctx context.Context, name string, args ...string) error {
	c, err := s.program(name, args...)
	if err != nil {
		return err
	}
	p, err := process.Start(s.Place.Thread, c)
	if err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	end, err := p.Wait(ctx)
	if err == nil && end.Code != 0 {
		err = fmt.Errorf("servers: %s: %s", name, p.Log())
	}
	return err
}

// Init makes the data of a new server, and starts it somewhere.
func (s *Postgres) Init(ctx context.Context) error {
	err := s.run(ctx, "initdb", "--pgdata="+s.data(), "--username=owner", "--auth=trust", "--no-sync",
		"--encoding=UTF8", "--locale=C")
	if err != nil {
		return err
	}
	const who = "host all all samenet trust\nhost replication all samenet trust\n"
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(who), 0o600); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return s.StartSomewhere(ctx)
}

// Copy makes it a standby of another server, and starts it somewhere.
func (s *Postgres) Copy(ctx context.Context, of *Postgres) error {
	err := s.run(ctx, "pg_basebackup", "--pgdata="+s.data(), "--dbname="+of.URL("owner", "postgres"),
		"--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync")
	if err != nil {
		return err
	}
	if err := s.StartSomewhere(ctx); err != nil {
		return err
	}
	of.Standby = s
	return nil
}

// serve is the server itself.
func (s *Postgres) serve(address string) (process.Command, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return process.Command{}, err
	}
	return s.program("postgres", "-D", s.data(), "-k", s.folder, "-p", port, "-c", "listen_addresses="+host,
		"-c", "fsync="+s.Fsync, "-c", "wal_level=replica", "-c", "shared_buffers=16MB",
		"-c", "max_connections=300")
}

// URL is where the server is, and its standby.
func (s *Postgres) URL(role, database string) string {
	hosts := s.address
	if s.Standby != nil {
		hosts += "," + s.Standby.address
	}
	return "postgres://" + role + "@" + hosts + "/" + database
}

// Connect opens one connection.
func (s *Postgres) Connect(ctx context.Context, role, database string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig(s.URL(role, database))
	if err != nil {
		return nil, err
	}
	c.DialFunc = s.Place.Dial
	return pgx.ConnectConfig(ctx, c)
}

func (s *Postgres) ping(ctx context.Context) error {
	c, err := s.Connect(ctx, "owner", "postgres")
	if err != nil {
		return err
	}
	return errors.Join(c.Ping(ctx), c.Close(ctx))
}

// SQL runs statements as the owner of everything.
func (s *Postgres) SQL(ctx context.Context, database, statements string) error {
	c, err := s.Connect(ctx, "owner", database)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	if _, err = c.Exec(ctx, statements); err != nil {
		return fmt.Errorf("servers: %s: %w", statements, err)
	}
	return nil
}

// Database makes a database with the table of leases, and the role sbr with its rights.
func (s *Postgres) Database(ctx context.Context) (name string, err error) {
	const role = `DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'sbr') THEN CREATE ROLE sbr LOGIN; END IF;
	END $$`
	name = "d" + strings.ToLower(strconv.FormatUint(rand.Uint64(), 36))
	if err := s.SQL(ctx, "postgres", role); err != nil {
		return "", err
	}
	if err := s.SQL(ctx, "postgres", "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	return name, s.SQL(ctx, name, postgres.Schema("", "sbr"))
}

// Pool returns a pool for stores.
func (s *Postgres) Pool(ctx context.Context, role, database string) (*pgxpool.Pool, error) {
	c, err := postgres.Config(s.URL(role, database), 5*time.Second)
	if err != nil {
		return nil, err
	}
	c.ConnConfig.DialFunc = s.Place.Dial
	return pgxpool.NewWithConfig(ctx, c)
}
