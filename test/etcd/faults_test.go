package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
	"github.com/serf-sbr/serf-sbr/test/faults"
)

// Party A is a user who may use the keys of the leases; the others may do everything.
func TestFaultMatrix(t *testing.T) {
	c := newCluster(t, 1, "--quota-backend-bytes=16777216")
	address := strings.TrimPrefix(c.members[0].client, "http://")
	const prefix = "/serf-sbr/"
	admin := c.client(t)
	defer func() { _ = admin.Close() }()
	newUsers(t, admin, "root", "sbr")
	allow := func(what clientv3.PermissionType) error {
		_, err := admin.RoleGrantPermission(t.Context(), "sbr", prefix, clientv3.GetPrefixRangeEnd(prefix), what)
		return err
	}
	require.NoError(t, allow(clientv3.PermissionType(clientv3.PermReadWrite)))
	_, err := admin.AuthEnable(t.Context())
	require.NoError(t, err)
	require.NoError(t, admin.Close())
	admin, err = login(c.members[0].client, "root")
	require.NoError(t, err)

	faults.Matrix(t, &faults.Target{
		Name:    "etcd",
		Address: address,
		Open: func(t *faults.T, at, name string) lease.Store {
			user := "sbr"
			if at == address {
				user = "root"
			}
			client, err := login("http://"+at, user)
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			store, err := etcd.New(client, prefix+name)
			require.NoError(t, err)
			return store
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := admin.Delete(ctx, prefix+name)
			return err
		},
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { c.members[0].server.Kill(); return nil },
				End:   func() error { c.start(c.members[0]); return nil },
			},
			faults.Withdrawn: {
				Begin: func() error { return allow(clientv3.PermissionType(clientv3.PermRead)) },
				End:   func() error { return allow(clientv3.PermissionType(clientv3.PermReadWrite)) },
			},
			faults.Full: {
				Begin: func() error { return fill(t.Context(), admin) },
				End:   func() error { return empty(t.Context(), admin, address) },
			},
		},
	})
}

const junk = "/junk"

// fill writes until the server takes no more.
func fill(ctx context.Context, c *clientv3.Client) error {
	for {
		_, err := c.Put(ctx, junk, strings.Repeat("x", 1<<20))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// empty makes room, as the manual of etcd says.
func empty(ctx context.Context, c *clientv3.Client, address string) error {
	got, err := c.Delete(ctx, junk)
	if err != nil {
		return err
	}
	_, err = c.Compact(ctx, got.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil {
		return err
	}
	if _, err = c.Defragment(ctx, "http://"+address); err != nil {
		return err
	}
	_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
