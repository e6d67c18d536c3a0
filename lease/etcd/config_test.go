package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// nowhere is an endpoint at which nobody listens.
const nowhere = "http://127.0.0.1:1"

func open(t *testing.T, name, set string) *Store {
	t.Helper()
	s, err := lease.Open(t.Context(), Key, lease.Spec{System: "payments", Name: name,
		Decode: func(into any) error { return json.Unmarshal([]byte(set), into) }})
	require.NoError(t, err)
	return s.(*Store)
}

// A process has one client for all leases of one configuration. It ends with the last of them.
func TestFactory_StoresShareAClient(t *testing.T) {
	of := func(more string) string { return fmt.Sprintf(`{"endpoints": [%q]%s}`, nowhere, more) }
	one, two := open(t, "one", of("")), open(t, "two", of(`, "prefix": "/other/"`))
	require.Same(t, one.client, two.client)
	require.Equal(t, "/other/two", two.key)
	another := open(t, "one", of(`, "tls": {"ca": ""}, "endpoints": ["127.0.0.1:1", "127.0.0.1:2"]`))
	require.NotSame(t, one.client, another.client)
	require.NoError(t, another.Close())
	require.NoError(t, one.Close())
	require.NoError(t, one.Close())
	require.NoError(t, two.client.Ctx().Err(), "one still uses it")
	require.NoError(t, two.Close())
	require.Error(t, two.client.Ctx().Err())
	anew := open(t, "one", of(""))
	require.NoError(t, anew.client.Ctx().Err())
	require.NoError(t, anew.Close())
}

// One record has one location, by whatever way a member gets there, and no other record has it.
func TestLocation(t *testing.T) {
	t.Parallel()
	at := func(name, set string) string {
		s := open(t, name, set)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s.Location()
	}
	where := at("one", `{"endpoints": ["a:1", "b:2"]}`)
	require.Equal(t, "etcd a:1,b:2, key /serf-sbr/one", where)
	for set, same := range map[string]bool{
		`{"endpoints": ["b:2", "a:1", "b:2"]}`:                  true,
		`{"endpoints": ["http://a:1", "http://me:secret@b:2"]}`: true,
		`{"endpoints": ["https://a:1", "https://b:2"]}`:         true,
		`{"endpoints": ["a:1", "b:3"]}`:                         false,
		`{"endpoints": ["a:1", "b:2"], "prefix": "/other/"}`:    false,
	} {
		require.Equal(t, same, at("one", set) == where, set)
	}
	require.NotEqual(t, where, at("two", `{"endpoints": ["a:1", "b:2"]}`))
	of := func(c *clientv3.Client) string { return (&Store{client: c, key: "one"}).Location() }
	one := clientv3.NewCtxClient(t.Context()) // that of a server in this process
	require.Equal(t, of(one), of(one))
	require.NotEqual(t, of(one), of(clientv3.NewCtxClient(t.Context())))
}

// The client takes its credentials from its first endpoint: that must not decide for the others.
func TestFactory_OneWayToAllEndpoints(t *testing.T) {
	t.Parallel()
	const (
		mixed   = "lease.etcd.endpoints mixes http:// and https://"
		dropped = "lease.etcd.tls is set, and an endpoint is http://"
	)
	for set, wrong := range map[string]string{
		`{"endpoints": ["http://a", "http://b"]}`:                                 "",
		`{"endpoints": ["a", "http://b"]}`:                                        "",
		`{"endpoints": ["a", "https://b"]}`:                                       "",
		`{"endpoints": ["http://a", "https://b"]}`:                                mixed,
		`{"endpoints": ["https://a", "http://b"], "tls": {"cert": "c"}}`:          mixed,
		`{"endpoints": ["a", "HTTP://b"], "tls": {"ca": "/etc/sbr/etcd-ca.pem"}}`: dropped,
	} {
		s, err := lease.Open(t.Context(), Key, lease.Spec{System: "payments",
			Decode: func(into any) error { return json.Unmarshal([]byte(set), into) }})
		if wrong != "" {
			require.ErrorContains(t, err, "etcd: "+wrong, set)
			continue
		}
		require.NoError(t, err, set)
		require.NoError(t, s.(*Store).Close())
	}
}

// The making of a client waits for a server that knows the user. Who has given up meanwhile does not begin to.
func TestFactory_NobodyWaitsInVain(t *testing.T) {
	t.Setenv(PasswordVariable, "secret")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lease.Open(ctx, Key, lease.Spec{System: "payments", Decode: func(into any) error {
		return json.Unmarshal(fmt.Appendf(nil, `{"endpoints": [%q], "username": "sbr"}`, nowhere), into)
	}})
	require.ErrorIs(t, err, context.Canceled)
}

// A write carries the record before it, too: what could be written only once is not written at all.
func TestWrite_TooLarge(t *testing.T) {
	s := open(t, "one", fmt.Sprintf(`{"endpoints": [%q]}`, nowhere))
	defer func() { require.NoError(t, s.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := lease.Record{Token: 1, Verdict: &sbr.Verdict{Reason: strings.Repeat("x", maxRecord)}}
	_, err := s.Write(ctx, r, "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.ErrorContains(t, err, "at most 716800: list fewer members in the verdict")
}
