package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/serf-sbr/serf-sbr/internal/secret"
	"github.com/serf-sbr/serf-sbr/internal/shared"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "etcd"

func init() { lease.Register(Key, Factory) }

const (
	// defaultPrefix stands before the name of the lease where the configuration names no other.
	defaultPrefix = "/serf-sbr/"
	// PasswordVariable is the environment variable with the password where the configuration has a username
	// and no password-file.
	PasswordVariable = "SBR_ETCD_PASSWORD" // #nosec G101 -- a name
	// keepAlive is after how long a silent connection is asked whether it still works, and how long that may
	// take.
	keepAlive = 5 * time.Second
)

// section is what a configuration file may say of this implementation.
type section struct {
	Endpoints    []string `json:"endpoints"     yaml:"endpoints"`
	Prefix       string   `json:"prefix"        yaml:"prefix"`
	Username     string   `json:"username"      yaml:"username"`
	PasswordFile string   `json:"password-file" yaml:"password-file"`
	TLS          struct {
		CA   string `json:"ca"   yaml:"ca"`
		Cert string `json:"cert" yaml:"cert"`
		Key  string `json:"key"  yaml:"key"`
	} `json:"tls" yaml:"tls"`
}

// clients are those of Factory, by what they are made from.
var clients shared.Values[string, *clientv3.Client]

// share returns the client, which connects when it is first used; with a username, when it is made. A store
// that does not use it any more calls end.
func (c *section) share(ctx context.Context, timeout time.Duration) (
	client *clientv3.Client, end func(), err error) {
	if len(c.Endpoints) == 0 {
		return nil, nil, errors.New("etcd: lease.etcd.endpoints is empty: name the members of the etcd cluster")
	}
	if err := c.oneWay(); err != nil {
		return nil, nil, fmt.Errorf("etcd: %w", err)
	}
	var password string
	if c.Username != "" {
		if password, err = secret.Of("lease.etcd.password", "", c.PasswordFile, PasswordVariable); err != nil {
			return nil, nil, fmt.Errorf("etcd: the password of lease.etcd.username: %w", err)
		}
	}
	key := fmt.Sprintf("%v %q %q %q %q", timeout, c.Endpoints, c.Username, password, c.TLS)
	return clients.Use(key, func() (*clientv3.Client, error) {
		if err := ctx.Err(); err != nil { // others have tried in vain, for as long as this one may wait
			return nil, fmt.Errorf("etcd: %w", err)
		}
		encrypted, err := c.tls()
		if err != nil {
			return nil, fmt.Errorf("etcd: lease.etcd.tls: %w", err)
		}
		return clientv3.New(clientv3.Config{
			Endpoints: c.Endpoints, Username: c.Username, Password: password, TLS: encrypted, DialTimeout: timeout,
			// its errors are returned
			DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive, Logger: zap.NewNop(),
		})
	}, func(client *clientv3.Client) { _ = client.Close() })
}

// scheme reports whether an endpoint has that scheme.
func (c *section) scheme(name string) bool {
	return slices.ContainsFunc(c.Endpoints, func(e string) bool {
		return strings.HasPrefix(strings.ToLower(e), name+"://")
	})
}

// oneWay refuses endpoints that want different credentials: the client has those of the first one for all.
func (c *section) oneWay() error {
	switch plain := c.scheme("http"); {
	case plain && c.scheme("https"):
		return errors.New("lease.etcd.endpoints mixes http:// and https://: the first one would decide for all")
	case plain && c.TLS != (section{}.TLS):
		return errors.New("lease.etcd.tls is set, and an endpoint is http://, which uses none: write https://")
	}
	return nil
}

// tls is nil where nothing asks for it.
func (c *section) tls() (*tls.Config, error) {
	if !c.scheme("https") && c.TLS == (section{}.TLS) {
		return nil, nil
	}
	t, err := transport.TLSInfo{TrustedCAFile: c.TLS.CA, CertFile: c.TLS.Cert, KeyFile: c.TLS.Key}.ClientConfig()
	if err == nil && c.TLS.CA != "" && t.RootCAs.Equal(x509.NewCertPool()) {
		err = fmt.Errorf("ca: %s: no certificate in PEM is in it", c.TLS.CA)
	}
	return t, err
}

// Factory is the implementation for lease.Register, configured by endpoints, prefix, username, password-file
// and tls. The key is the prefix and the lease's name. Its stores are *Store: close them. Those of one cluster
// share a client.
func Factory(ctx context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	client, end, err := set.share(ctx, spec.Settings.OperationTimeout)
	if err != nil {
		return nil, err
	}
	s, err := New(client, cmp.Or(set.Prefix, defaultPrefix)+spec.Name)
	if err != nil {
		end()
		return nil, err
	}
	s.end = end
	return s, nil
}

// Close ends the store. A client that Factory made is closed with its last store.
func (s *Store) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// Risks says what would lose a write that the cluster acknowledged, or stop it: a sentence each, with the way
// out. That members run without fsync they do not tell.
func (s *Store) Risks(ctx context.Context) (risks []string, err error) {
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return nil, s.wrap(err)
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	switch {
	case voters == 1:
		risks = append(risks, "etcd has one member: whoever loses its disk loses the verdicts, and while it is away nothing is decided: "+
			"run three, each on a machine of its own")
	case voters%2 == 0:
		risks = append(risks, fmt.Sprintf("etcd has %d members: as many may fail as with %d: add one, or remove one", voters, voters-1))
	}
	alarms, err := s.client.AlarmList(ctx)
	if err != nil {
		return risks, s.wrap(err)
	}
	for _, a := range alarms.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			risks = append(risks,
				fmt.Sprintf("the disk quota of member %x is used up, and no write is taken: compact, defragment, "+
					"and disarm the alarm (etcdctl alarm disarm)", a.MemberID))
		}
	}
	return risks, nil
}
