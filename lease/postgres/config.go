package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/internal/secret"
	"github.com/serf-sbr/serf-sbr/internal/shared"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "postgres"

func init() { lease.Register(Key, Factory) }

// URLVariable is the environment variable that is read where the configuration has neither url nor url-file.
const URLVariable = "SBR_POSTGRES_URL"

// Config returns the configuration of a pool for stores: a URL or keywords, as libpq knows them. Of several
// servers it takes the primary; it is told of warnings; without pool_max_conns it has at most two
// connections. A timeout bounds each attempt to connect.
func Config(url string, timeout time.Duration) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil { // the error quotes it, password included
		return nil, errors.New("postgres: lease.postgres.url is not valid: postgres://USER@HOST/DATABASE is, and host=HOST user=USER")
	}
	if !strings.Contains(url, "pool_max_conns") {
		c.MaxConns = 2
	}
	conn := c.ConnConfig
	for _, other := range conn.Fallbacks { // there are others for TLS, too
		several := other.Host != conn.Host || other.Port != conn.Port
		if several && conn.ValidateConnect == nil {
			conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "serf-sbr"
	}
	conn.ConnectTimeout, conn.OnNotice = timeout, heed
	c.BeforeConnect = cancelNothing
	return c, nil
}

var errNotCancelled = errors.New("postgres: a statement is not cancelled: it may wait for a standby")

// cancelNothing keeps pgx from cancelling the statement of a connection that it gives up. A commit that waits for
// a synchronous standby would be shown to readers then, although a failover may still lose it: a member would act
// on a verdict that nobody has later. Left alone the server shows the commit once the standby has it. A
// cancellation is a second dial.
func cancelNothing(_ context.Context, conn *pgx.ConnConfig) error {
	dial, connected := conn.DialFunc, new(atomic.Bool)
	conn.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errNotCancelled
		}
		return dial(ctx, network, addr)
	}
	conn.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

// section is what a configuration file may say of this implementation.
type section struct {
	URL     string `json:"url"      yaml:"url"`
	URLFile string `json:"url-file" yaml:"url-file"`
	Table   string `json:"table"    yaml:"table"`
}

// Factory is the implementation for lease.Register, configured by url or url-file, and table. The row has the
// lease's name. Its stores are *Store: close them. Those of one server share a pool.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	pool, end, err := set.share(spec.Settings.OperationTimeout)
	if err != nil {
		return nil, err
	}
	s, err := New(pool, set.Table, spec.Name)
	if err != nil {
		end()
		return nil, err
	}
	s.end = end
	return s, nil
}

// pools are those of Factory, by what they are made from.
var pools shared.Values[string, *pgxpool.Pool]

// share returns the pool. A store that does not use it any more calls end.
func (c section) share(timeout time.Duration) (pool *pgxpool.Pool, end func(), err error) {
	url, err := c.url()
	if err != nil {
		return nil, nil, fmt.Errorf("postgres: no server: %w", err)
	}
	return pools.Use(fmt.Sprintf("%v %q %q", timeout, c.URLFile, url), func() (*pgxpool.Pool, error) {
		config, err := Config(url, timeout)
		if err != nil {
			return nil, err
		}
		before := config.BeforeConnect
		config.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
			c.renew(conn)
			return before(ctx, conn)
		}
		return pgxpool.NewWithConfig(context.Background(), config)
	}, (*pgxpool.Pool).Close)
}

func (c section) url() (string, error) {
	url, err := secret.Of("lease.postgres.url", c.URL, c.URLFile, URLVariable)
	return strings.TrimSpace(url), err
}

// renew takes the user and the password from where the URL is. All else stays: a pool whose connections lead to
// two servers would be two stores. What cannot be read leaves the connection as it is.
func (c section) renew(conn *pgx.ConnConfig) {
	url, err := c.url()
	if err != nil {
		return
	}
	if now, err := pgx.ParseConfig(url); err == nil {
		conn.User, conn.Password = now.User, now.Password
	}
}
