package etcd_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
	"github.com/serf-sbr/serf-sbr/test/costs"
)

func BenchmarkCosts(b *testing.B) {
	c := newCluster(b, 1, durable)
	u, err := url.Parse(c.members[0].client)
	require.NoError(b, err)
	var requests atomic.Int64 // of those behind the proxy; HTTP/2 has turns of its own
	dial := func(b *testing.B, at string) *clientv3.Client {
		cfg := clientv3.Config{Endpoints: []string{"http://" + at}, Logger: zap.NewNop()}
		if at != u.Host {
			cfg.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
				func(ctx context.Context, method string, ask, answer any,
					conn *grpc.ClientConn, next grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					requests.Add(1)
					return next(ctx, method, ask, answer, conn, opts...)
				})}
		}
		client, err := clientv3.New(cfg)
		require.NoError(b, err)
		b.Cleanup(func() { _ = client.Close() })
		return client
	}
	shared := dial(b, u.Host)
	costs.Run(b, &costs.Target{
		Address: u.Host, Requests: func() int { return int(requests.Load()) },
		Open: func(b *testing.B, at, name string) lease.Store {
			client := shared // as a configuration opens them
			if at != u.Host {
				client = dial(b, at)
			}
			store, err := etcd.New(client, "/serf-sbr/"+name)
			require.NoError(b, err)
			return store
		},
		Bare: func(b *testing.B, at, name, text string) func(context.Context) error {
			client := dial(b, at)
			var revision int64
			return func(ctx context.Context) error {
				done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", revision)).
					Then(clientv3.OpPut(name, text)).Commit()
				if err == nil {
					require.True(b, done.Succeeded)
					revision = done.Header.Revision
				}
				return err
			}
		},
		Written: func(b *testing.B) int {
			got, err := shared.Get(b.Context(), "any")
			require.NoError(b, err)
			return int(got.Header.Revision)
		},
		Others: map[string]func(*testing.B, string, time.Duration) costs.Lock{
			"mutex": func(b *testing.B, at string, ttl time.Duration) costs.Lock {
				s := session(b, dial(b, at), ttl)
				return &mutex{concurrency.NewMutex(s, "/mutex"), s}
			},
			"election": func(b *testing.B, at string, ttl time.Duration) costs.Lock {
				s := session(b, dial(b, at), ttl)
				return &election{concurrency.NewElection(s, "/election"), s}
			},
		},
	})
}

func session(b *testing.B, client *clientv3.Client, ttl time.Duration) *concurrency.Session {
	s, err := concurrency.NewSession(client, concurrency.WithTTL(int(ttl/time.Second)),
		concurrency.WithContext(b.Context()))
	require.NoError(b, err)
	return s
}

type mutex struct {
	*concurrency.Mutex
	s *concurrency.Session
}

// Crash: the session is renewed no more.
func (l *mutex) Crash() { l.s.Orphan() }

type election struct {
	*concurrency.Election
	s *concurrency.Session
}

func (l *election) Lock(ctx context.Context) error   { return l.Campaign(ctx, rand.Text()) }
func (l *election) Unlock(ctx context.Context) error { return l.Resign(ctx) }
func (l *election) Crash()                           { l.s.Orphan() }
