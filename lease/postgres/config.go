package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "postgres"

func init() { lease.Register(Key, Factory) }

// URLVariable is the environment variable that is read where the configuration has neither url nor url-file.
const URLVariable = "SBR_POSTGRES_URL"

// Config returns the configuration of a pool for stores: of several servers it takes the primary, and it
// listens to warnings. A timeout bounds each attempt to connect.
func Config(url string, timeout time.Duration) (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("postgres: lease.postgres.url is not valid") // the error quotes it
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
	return c, nil
}

// section is what a configuration file may say of this implementation.
type section struct {
	URL     string `json:"url"      yaml:"url"`
	URLFile string `json:"url-file" yaml:"url-file"`
	Table   string `json:"table"    yaml:"table"`
}

// url is where the server is, password included. It is in no error.
func (c section) url() (string, error) {
	if c.URL != "" && c.URLFile != "" {
		return "", errors.New("postgres: lease.postgres has both url and url-file: leave one out")
	}
	url := cmp.Or(c.URL, os.Getenv(URLVariable))
	if c.URLFile != "" {
		text, err := os.ReadFile(c.URLFile)
		if err != nil {
			return "", fmt.Errorf("postgres: lease.postgres.url-file: %w", err)
		}
		url = strings.TrimSpace(string(text))
	}
	if url == "" {
		return "", fmt.Errorf("postgres: no server: set lease.postgres.url-file, lease.postgres.url or $%s", URLVariable)
	}
	return url, nil
}

// Factory is the implementation for lease.Register, configured by url or url-file, and table. The row has the
// lease's name, "<system>-sbr" if that is empty. Its stores are *Store: close them.
func Factory(ctx context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	url, err := set.url()
	if err != nil {
		return nil, err
	}
	c, err := Config(url, cmp.Or(spec.Settings.OperationTimeout, lease.DefaultSettings().OperationTimeout))
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), c)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s, err := New(pool, set.Table, cmp.Or(spec.Name, spec.System+"-sbr"))
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned = true
	return s, nil
}
