package etcd_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newKey is a key of its own for each test.
func newKey(t testing.TB) string { return "/serf-sbr/" + t.Name() }

// store returns a store over a connection of its own.
func (c *cluster) store(t testing.TB, key string) *etcd.Store {
	t.Helper()
	client := c.client(t)
	t.Cleanup(func() { _ = client.Close() })
	s, err := etcd.New(client, key)
	require.NoError(t, err)
	return s
}

func (c *cluster) harness(t *testing.T) leasetest.Harness {
	key, admin := newKey(t), c.client(t)
	t.Cleanup(func() { _ = admin.Close() })
	return leasetest.Harness{
		Open: func(t testing.TB, _ string) lease.Store { return c.store(t, key) },
		Delete: func(t testing.TB) {
			_, err := admin.Delete(t.Context(), key)
			require.NoError(t, err)
		},
	}
}

func TestConformance_OneMember(t *testing.T) {
	c := newCluster(t, 1)
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		h := c.harness(t)
		h.Interrupt = func(t testing.TB) {
			c.members[0].server.Kill()
			c.start(c.members[0])
			require.NoError(t, c.healthy())
		}
		return h
	})
}

// The leader is killed, or paused, in the middle: what was answered before is not forgotten. A leader that
// goes on after a pause still takes itself for the leader, and has requests waiting.
func TestConformance_Failover(t *testing.T) {
	for name, failover := range map[string]func(*cluster, testing.TB){
		"killed": func(c *cluster, t testing.TB) {
			c.failover(t, func(m *member) { m.server.Kill() }, c.start)
		},
		"paused": func(c *cluster, t testing.TB) {
			c.failover(t,
				func(m *member) { require.NoError(t, m.server.Pause(t.Context())) },
				func(m *member) { require.NoError(t, m.server.Resume()) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3)
			leasetest.RunLease(t, func(t *testing.T) leasetest.Harness {
				h := c.harness(t)
				h.Failover = func(t testing.TB) { failover(c, t) }
				return h
			})
		})
	}
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	_, err := etcd.New(nil, "key")
	require.ErrorContains(t, err, "a client is required")
	_, err = etcd.New(&clientv3.Client{}, "")
	require.ErrorContains(t, err, "a key is required")
}

// After a restore revisions repeat. What was read before it is another version all the same.
func TestWrite_ARepeatedRevisionIsAnotherVersion(t *testing.T) {
	key := newKey(t)
	var before lease.Version
	var revision int64
	for _, holder := range []string{"a", "b"} {
		c := newCluster(t, 1) // each counts its revisions from one
		s := c.store(t, key)
		version, err := s.Write(t.Context(), lease.Record{Holder: holder, Token: 1}, "")
		require.NoError(t, err)
		client := c.client(t)
		got, err := client.Get(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, client.Close())
		if before != "" {
			require.Equal(t, revision, got.Kvs[0].ModRevision, "the revisions are equal")
			_, err = s.Write(t.Context(), lease.Record{Holder: "c", Token: 2}, before)
			require.ErrorIs(t, err, lease.ErrConflict)
		}
		before, revision = version, got.Kvs[0].ModRevision
	}
}

// What an error leaves open is in the fault matrix.
func TestErrors_SayWhatIsCertain(t *testing.T) {
	c := newCluster(t, 1)
	key, admin := newKey(t), c.client(t)
	defer admin.Close()
	s := c.store(t, key)
	identity, err := s.Identity(t.Context())
	require.NoError(t, err)
	assert.Regexp(t, "^etcd cluster [0-9a-f]{16}, key "+key+"$", identity)
	assert.Equal(t, key, s.String())

	_, err = s.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, "not a version")
	assert.ErrorIs(t, err, lease.ErrConflict, "the record is certainly not at it")
	_, err = s.Write(t.Context(), lease.Record{Holder: "\xff", Token: 1}, "")
	assert.ErrorIs(t, err, lease.ErrRefused)
	sized := func(bytes int) lease.Record {
		return lease.Record{Token: 1, Verdict: &sbr.Verdict{Reason: strings.Repeat("x", bytes)}}
	}
	var version lease.Version
	for range 2 { // the second write carries the first record, too
		version, err = s.Write(t.Context(), sized(716_500), version)
		require.NoError(t, err, "700 KiB at most")
	}
	_, err = s.Write(t.Context(), sized(700<<10), version)
	assert.ErrorIs(t, err, lease.ErrTooLarge)
	assert.ErrorIs(t, err, lease.ErrRefused)
	strict := newCluster(t, 1, "--max-request-bytes=1000").store(t, key)
	_, err = strict.Write(t.Context(), sized(2000), "")
	assert.ErrorIs(t, err, lease.ErrTooLarge)
	assert.ErrorIs(t, err, lease.ErrRefused)

	_, err = admin.Put(t.Context(), key, "by hand")
	require.NoError(t, err)
	_, err = s.Read(t.Context())
	assert.ErrorIs(t, err, lease.ErrRefused)
	assert.ErrorContains(t, err, key)
	assert.ErrorIs(t, s.Watch(t.Context(), func(lease.Snapshot) {}), lease.ErrRefused)
}

// newUsers makes users, each with a role of its own.
func newUsers(t *testing.T, admin *clientv3.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := admin.UserAdd(t.Context(), name, "secret")
		require.NoError(t, err)
		_, err = admin.RoleAdd(t.Context(), name)
		require.NoError(t, err)
		_, err = admin.UserGrantRole(t.Context(), name, name)
		require.NoError(t, err)
	}
}

// login returns a client of one of them.
func login(url, user string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{url}, Username: user, Password: "secret", Logger: zap.NewNop(),
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
	})
}

// A user without the right to the key is refused, at once and for certain.
func TestRights(t *testing.T) {
	c := newCluster(t, 1)
	key, admin := newKey(t), c.client(t)
	defer admin.Close()
	newUsers(t, admin, "root", "guest")
	_, err := admin.AuthEnable(t.Context())
	require.NoError(t, err)
	guest, err := login(c.members[0].client, "guest")
	require.NoError(t, err)
	defer guest.Close()
	s, err := etcd.New(guest, key)
	require.NoError(t, err)
	_, err = s.Read(t.Context())
	assert.ErrorIs(t, err, lease.ErrRefused)
	_, err = s.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, "")
	assert.ErrorIs(t, err, lease.ErrRefused)
	assert.ErrorIs(t, s.Watch(t.Context(), func(lease.Snapshot) {}), lease.ErrRefused)
	assert.ErrorIs(t, c.store(t, key).Watch(t.Context(), nil), lease.ErrRefused, "without a user")
}

// What the next write will need is asked for before it is needed, and changes nothing.
func TestPreflight(t *testing.T) {
	c := newCluster(t, 1, "--quota-backend-bytes=16777216")
	key, admin := newKey(t), c.client(t)
	defer func() { _ = admin.Close() }()
	require.NoError(t, lease.Preflight(t.Context(), c.store(t, key)))
	got, err := admin.Get(t.Context(), key)
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
	require.EqualValues(t, 1, got.Header.Revision, "nothing was written")

	newUsers(t, admin, "root", "reader")
	_, err = admin.RoleGrantPermission(t.Context(), "reader", key, "",
		clientv3.PermissionType(clientv3.PermRead))
	require.NoError(t, err)
	require.NoError(t, fill(t.Context(), admin))
	require.ErrorIs(t, lease.Preflight(t.Context(), c.store(t, key)), lease.ErrRefused, "no space")
	require.NoError(t, empty(t.Context(), admin, strings.TrimPrefix(c.members[0].client, "http://")))
	_, err = admin.AuthEnable(t.Context())
	require.NoError(t, err)
	reader, err := login(c.members[0].client, "reader")
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	s, err := etcd.New(reader, key)
	require.NoError(t, err)
	_, err = s.Read(t.Context())
	require.NoError(t, err)
	err = lease.Preflight(t.Context(), s)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "permission denied")
}

// Risks reports what would lose a verdict, or stop the store.
func TestRisks(t *testing.T) {
	alone := newCluster(t, 1, "--quota-backend-bytes=16777216")
	risks, err := alone.store(t, newKey(t)).Risks(t.Context())
	require.NoError(t, err)
	require.Len(t, risks, 1)
	assert.Contains(t, risks[0], "etcd has one member")

	client := alone.client(t)
	defer func() { _ = client.Close() }()
	require.NoError(t, fill(t.Context(), client))
	risks, err = alone.store(t, newKey(t)).Risks(t.Context())
	require.NoError(t, err)
	require.Len(t, risks, 2)
	assert.Contains(t, risks[1], "no write is taken")

	risks, err = newCluster(t, 3).store(t, newKey(t)).Risks(t.Context())
	require.NoError(t, err)
	assert.Empty(t, risks)
}

func TestFactory_SaysWhatIsWrong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("no PEM"), 0o600))
	for says, set := range map[string]string{
		"etcd: lease.etcd.endpoints is empty":                                   `{}`,
		"set lease.etcd.password-file or $SBR_ETCD_PASSWORD":                    `{"endpoints": ["a"], "username": "sbr"}`,
		"lease.etcd.password-file: open":                                        `{"endpoints": ["a"], "username": "sbr", "password-file": "absent"}`,
		"lease.etcd.tls: open":                                                  `{"endpoints": ["a"], "tls": {"ca": "absent"}}`,
		"lease.etcd.tls: ca: " + file + ": no certificate in PEM":               `{"endpoints": ["a"], "tls": {"ca": "` + file + `"}}`,
		"lease.etcd.tls: KeyFile and CertFile must both be present":             `{"endpoints": ["a"], "tls": {"key": "` + file + `"}}`,
		"lease.etcd.tls: tls: failed to find any PEM data in certificate input": `{"endpoints": ["a"], "tls": {"cert": "` + file + `", "key": "` + file + `"}}`,
	} {
		_, err := open(t, set)
		require.ErrorContains(t, err, says)
	}
	// With TLS, a server without it is no server.
	c := newCluster(t, 1)
	plain, secure := c.members[0].client, "https://"+strings.TrimPrefix(c.members[0].client, "http://")
	for endpoint, works := range map[string]bool{plain: true, secure: false} {
		store, err := open(t, `{"endpoints": ["`+endpoint+`"]}`)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err = store.Read(ctx)
		cancel()
		assert.Equal(t, works, err == nil, "%s: %v", endpoint, err)
		require.NoError(t, store.(*etcd.Store).Close())
	}
}

func open(t *testing.T, set string) (lease.Store, error) {
	t.Helper()
	return lease.Open(t.Context(), etcd.Key, lease.Spec{System: "payments", Decode: func(into any) error {
		return json.Unmarshal([]byte(set), into)
	}})
}
