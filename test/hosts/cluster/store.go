//go:build linux

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/servers"
)

// Stores are the kinds of lease stores, the first of which is the default of sbr.yaml.
var Stores = []string{kubernetes.Key, etcd.Key, postgres.Key, mongodb.Key}

// Store is a running lease store, on the host for it. It ends with the lab.
type Store struct {
	// Kind is its lease-implementation.
	Kind string
	// API is Kubernetes, or the etcd of that kind; nil for other kinds.
	API *kubetest.Cluster
	// Kill ends the server at once, Start starts it again with the data that it had. Of Kubernetes it is the
	// API server.
	Kill  func()
	Start func(ctx context.Context) error
	// Pause lets the server stand still, Continue go on. Of Kubernetes it is etcd.
	Pause    func(ctx context.Context) error
	Continue func() error

	open func(ctx context.Context, c *Cluster) (*keep, error)
}

// keep is the place of one cluster's lease in a store.
type keep struct {
	section map[string]any // lease.<kind> of sbr.yaml
	record  lease.Store    // as its administrator sees it, from the store's own host: no cut is between
	remove  func(ctx context.Context) error
	close   func()
}

// StartStore starts a lease store of a kind on a host of the lab. What takes minutes to build is told to
// progress.
func StartStore(ctx context.Context, l *lab.Lab, host, kind string, progress io.Writer) (*Store, error) {
	switch kind {
	case kubernetes.Key:
		api, err := l.StartAPI(ctx, host, progress)
		if err != nil {
			return nil, err
		}
		return Kubernetes(api), nil
	case etcd.Key:
		return startEtcd(ctx, l, host, progress)
	case postgres.Key:
		return startPostgres(ctx, l, host)
	case mongodb.Key:
		return startMongoDB(ctx, l, host, progress)
	default:
		return nil, fmt.Errorf("cluster: no store is called %q; there are %q", kind, Stores)
	}
}

// Kubernetes is a lease store that has been started.
func Kubernetes(api *kubetest.Cluster) *Store {
	return &Store{
		Kind: kubernetes.Key, API: api, Kill: api.KillAPIServer, Start: api.StartAPIServer,
		Pause: func(context.Context) error { return api.PauseEtcd() }, Continue: api.ContinueEtcd,
		open: func(ctx context.Context, c *Cluster) (*keep, error) { return c.inKubernetes(ctx, api) },
	}
}

// inKubernetes makes a namespace, and rights in it.
func (c *Cluster) inKubernetes(ctx context.Context, api *kubetest.Cluster) (*keep, error) {
	var err error
	if c.account, err = api.LeastPrivilegeAccount(ctx, c.namespace, leaseName); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	others := slices.Concat(c.options.Singleton.leases(), c.options.Shards.leases())
	if err := c.allow(ctx, api, others); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", api.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	config.Dial = c.lab.Store().DialContext
	cfg := kubernetes.DefaultConfig()
	cfg.Namespace, cfg.Name = c.namespace, leaseName
	record, err := kubernetes.NewForConfig(config, cfg)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	path := "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases"
	return &keep{
		section: map[string]any{"namespace": c.namespace, "kubeconfig": c.account.Kubeconfig()},
		record:  record, close: func() { _ = record.Close() },
		remove: func(ctx context.Context) error {
			code, said, err := api.Do(ctx, http.MethodDelete, path+"/"+leaseName, nil)
			if err == nil && code >= 300 && code != http.StatusNotFound {
				err = fmt.Errorf("%d %s", code, said)
			}
			return err
		},
	}, nil
}

func startEtcd(ctx context.Context, l *lab.Lab, host string, progress io.Writer) (*Store, error) {
	api, err := l.StartEtcd(ctx, host, progress)
	if err != nil {
		return nil, err
	}
	s := &Store{
		Kind: etcd.Key, API: api, Kill: api.KillEtcd, Start: api.StartEtcd,
		Pause: func(context.Context) error { return api.PauseEtcd() }, Continue: api.ContinueEtcd,
	}
	s.open = func(context.Context, *Cluster) (*keep, error) {
		endpoints, dial := []string{api.EtcdURL()}, l.Host(host).DialContext
		client, err := clientv3.New(clientv3.Config{
			Endpoints: endpoints, Logger: zap.NewNop(),
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(
				func(ctx context.Context, at string) (net.Conn, error) { return dial(ctx, "tcp", at) },
			)},
		})
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		const key = "/serf-sbr/" + leaseName
		record, err := etcd.New(client, key)
		return &keep{
			section: map[string]any{"endpoints": endpoints}, record: record,
			close:  func() { _ = client.Close() },
			remove: func(ctx context.Context) error { _, err := client.Delete(ctx, key); return err },
		}, err
	}
	return s, nil
}

func startPostgres(ctx context.Context, l *lab.Lab, host string) (*Store, error) {
	var server *servers.Postgres
	var database string
	err := l.StartStore(ctx, host, func(h *lab.Host, place servers.Place) (func() error, error) {
		var err error
		if server, err = servers.NewPostgres(place, h.File("postgres.log")); err != nil {
			return nil, err
		}
		if err = server.Init(ctx); err == nil {
			database, err = server.Database(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, server.Close())
		}
		return server.Close, nil
	})
	if err != nil {
		return nil, err
	}
	s := &Store{Kind: postgres.Key, Kill: func() { server.Kill() }, Start: server.Start}
	s.standStill(l, host)
	s.open = func(ctx context.Context, _ *Cluster) (*keep, error) {
		pool, err := server.Pool(ctx, "owner", database)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		record, err := postgres.New(pool, "", leaseName)
		return &keep{
			section: map[string]any{"url": server.URL("sbr", database)}, record: record, close: pool.Close,
			remove: func(ctx context.Context) error { return server.SQL(ctx, database, "DELETE FROM sbr_lease") },
		}, err
	}
	return s, nil
}

func startMongoDB(ctx context.Context, l *lab.Lab, host string, progress io.Writer) (*Store, error) {
	var server *servers.FerretDB
	err := l.StartStore(ctx, host, func(h *lab.Host, place servers.Place) (end func() error, err error) {
		if server, err = servers.StartFerretDB(ctx, place, "", h.File("ferretdb.log"), progress); err != nil {
			return nil, err
		}
		return server.Close, nil
	})
	if err != nil {
		return nil, err
	}
	s := &Store{Kind: mongodb.Key, Kill: func() { server.Kill() }, Start: server.Start}
	s.standStill(l, host)
	s.open = func(ctx context.Context, c *Cluster) (*keep, error) {
		client, err := mongo.Connect(server.Options())
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		collection := client.Database("sbr").Collection("sbr_leases")
		if err := client.Database("sbr").CreateCollection(ctx, collection.Name()); err != nil {
			return nil, errors.Join(err, client.Disconnect(ctx))
		}
		record, err := mongodb.New(collection, leaseName)
		return &keep{
			section: map[string]any{"uri": server.URI(), "database": "sbr"}, record: record,
			close: func() { _ = client.Disconnect(context.Background()) },
			remove: func(ctx context.Context) error {
				_, err := collection.DeleteOne(ctx, bson.D{{Key: "_id", Value: leaseName}})
				return err
			},
		}, err
	}
	return s, nil
}

// standStill pauses everything on the store's host: some servers are several processes.
func (s *Store) standStill(l *lab.Lab, host string) {
	var still *lab.Standstill
	s.Pause = func(ctx context.Context) (err error) {
		still, err = l.Freeze(ctx, host)
		return err
	}
	s.Continue = func() error { return still.Continue() }
}
