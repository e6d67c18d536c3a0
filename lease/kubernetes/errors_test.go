package kubernetes_test

import (
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// TestWrite_ErrorTable answers both kinds of write with everything that a server, or something in front of
// it, may answer.
func TestWrite_ErrorTable(t *testing.T) {
	type outcome string
	const (
		conflict = outcome("conflict")
		refused  = outcome("refused")
		tooLarge = outcome("too large")
		unknown  = outcome("unknown")
	)
	status := func(code int, reason, kind, name, message string) func() (int, object) {
		return func() (int, object) { return kubefake.Failure(code, reason, kind, name, message) }
	}
	forbid := func(message string) func() (int, object) {
		return status(403, "Forbidden", "leases", testName, message)
	}
	for _, c := range []struct {
		name          string
		answer        func() (int, object)
		create, patch outcome
		advice        string
	}{
		{"conflict", status(409, "Conflict", "leases", testName, "modified"), conflict, conflict, ""},
		{"exists", status(409, "AlreadyExists", "leases", testName, "exists"), conflict, conflict, ""},
		{"deleted", func() (int, object) { return kubefake.NotFound(testName) }, refused, conflict, ""},
		{"no namespace", status(404, "NotFound", "namespaces", testNamespace, `namespaces "team-a" not found`), refused, refused, "the namespace does not exist"},
		{"no API", status(404, "NotFound", "", "", "the server could not find the requested resource"), refused, refused, "no coordination.k8s.io/v1"},
		{"no right", func() (int, object) { return kubefake.Denied("patch", testName) }, refused, refused, "must allow get, watch, create, update and patch"},
		{"anonymous", forbid(`leases is forbidden: User "system:anonymous" cannot patch resource "leases"`), refused, refused, "the request had no credentials"},
		{"quota", forbid("exceeded quota: leases"), refused, refused, "denied by a quota or an admission rule"},
		{"version missing", func() (int, object) {
			return kubefake.Invalid(testName, "metadata.resourceVersion", "must be specified for an update")
		}, conflict, conflict, ""},
		{"another object", func() (int, object) { return kubefake.Invalid(testName, "metadata.uid", "field is immutable") }, conflict, conflict, ""},
		{"invalid", func() (int, object) {
			return kubefake.Invalid(testName, "spec.leaseTransitions", "must be greater than 0")
		}, refused, refused, ""},
		{"annotations", func() (int, object) {
			return kubefake.Invalid(testName, "metadata.annotations", "Too long: may not be more than 262144 bytes")
		}, tooLarge, tooLarge, ""},
		{"body", status(413, "RequestEntityTooLarge", "", "", "limit is 3145728"), tooLarge, tooLarge, ""},
		{"bad request", status(400, "BadRequest", "", "", "bad"), refused, refused, ""},
		{"not allowed", status(405, "MethodNotAllowed", "", "", "no"), refused, refused, ""},
		{"media type", status(415, "UnsupportedMediaType", "", "", "no"), refused, refused, ""},
		{"token", status(401, "Unauthorized", "", "", "Unauthorized"), unknown, unknown, "the credentials were not accepted"},
		{"request timeout", status(408, "Timeout", "", "", "late"), unknown, unknown, ""},
		{"throttled", status(429, "TooManyRequests", "", "", "later"), unknown, unknown, ""},
		{"internal", status(500, "InternalError", "", "", "etcdserver: request timed out"), unknown, unknown, ""},
		{"gateway", status(502, "", "", "", ""), unknown, unknown, ""},
		{"unavailable", status(503, "ServiceUnavailable", "", "", "leader changed"), unknown, unknown, ""},
		{"timeout", status(504, "Timeout", "", "", "request did not complete within requested timeout"), unknown, unknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := kubefake.New(t)
			s := newStore(t, f)
			first := mustWrite(t, s, record("a", 1), "")
			retryAfter := "0"
			f.With(func() {
				f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Retry-After", retryAfter)
					code, body := c.answer()
					kubefake.WriteJSON(w, code, body)
					return true
				}
			})
			for prev, want := range map[lease.Version]outcome{"": c.create, first.Version: c.patch} {
				f.ResetCalls()
				_, err := s.Write(t.Context(), record("a", 2), prev)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "\n")
				require.ErrorContains(t, err, "lease team-a/payments-sbr: ")
				require.ErrorContains(t, err, c.advice)
				require.Equal(t, 1, len(f.Made()), "no hidden retry")
				switch want {
				case unknown:
					requireUnknown(t, err)
				case conflict:
					require.ErrorIs(t, err, lease.ErrConflict)
					require.NotErrorIs(t, err, lease.ErrRefused)
				case tooLarge:
					require.ErrorIs(t, err, lease.ErrTooLarge)
					require.ErrorIs(t, err, lease.ErrRefused)
				case refused:
					require.ErrorIs(t, err, lease.ErrRefused)
					require.NotErrorIs(t, err, lease.ErrConflict)
					require.NotErrorIs(t, err, lease.ErrTooLarge)
				}
			}
			f.ResetCalls()
			retryAfter = "60"
			began := time.Now()
			_, _ = s.Write(t.Context(), record("a", 2), first.Version)
			_, _ = s.Write(t.Context(), record("a", 2), "")
			_, _ = s.Read(t.Context())
			require.Equal(t, []string{"patch", "update", "get"}, f.Made(), "no hidden retry, whenever it is wanted")
			require.Less(t, time.Since(began), time.Second)
		})
	}
}

// Between here and the API server there are proxies, load balancers and login pages: their codes say nothing
// about the lease. Nor is a body an answer that ends in the middle, or that is no stored lease.
func TestNotFromTheAPIServer(t *testing.T) {
	type answer struct {
		code              int
		contentType, body string
	}
	answers := map[string]answer{}
	for _, code := range []int{200, 204, 301, 307, 400, 403, 404, 409, 413, 422, 500, 503} {
		for _, contentType := range []string{"text/html", "application/json"} {
			answers[strconv.Itoa(code)+" "+contentType] = answer{code, contentType, "<html>nothing to see</html>"}
		}
	}
	for name, body := range map[string]string{
		"half":       `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"uid":"u","resourceVer`,
		"empty":      ``,
		"no version": `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"uid":"u"}}`,
		"no uid":     `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"resourceVersion":"5"}}`,
		"success":    `{"apiVersion":"v1","kind":"Status","status":"Success"}`,
	} {
		answers[name] = answer{200, "application/json", body}
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			f := kubefake.New(t)
			s := newStore(t, f)
			first := mustWrite(t, s, record("a", 1), "")
			f.With(func() {
				f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Content-Type", a.contentType)
					w.Header().Set("Location", f.URL+"/login")
					w.WriteHeader(a.code)
					if a.code != 204 {
						_, _ = w.Write([]byte(a.body))
					}
					return true
				}
			})
			for _, prev := range []lease.Version{"", first.Version} {
				f.ResetCalls()
				_, err := s.Write(t.Context(), record("a", 2), prev)
				requireUnknown(t, err)
				require.Equal(t, 1, len(f.Made()), "no redirect, no retry")
			}
			_, err := s.Read(t.Context())
			require.Error(t, err, "not a lease that is free")
		})
	}
}

func TestUnreachable_Advice(t *testing.T) {
	f := kubefake.New(t)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	cfg := testConfig()
	cfg.RequestTimeout = 5 * time.Second
	for name, c := range map[string]struct {
		change func(*config)
		want   string
	}{
		"refused":     {func(c *config) { c.Host = "https://" + plain.Addr().String() }, "nothing listens"},
		"unknown":     {func(c *config) { c.Host = "https://nowhere.invalid" }, "("},
		"wrong CA":    {func(c *config) { c.CAData = nil }, "not of the configured authority"},
		"wrong name":  {func(c *config) { c.ServerName = "elsewhere.example" }, "not valid for this address"},
		"token file":  {func(c *config) { c.BearerTokenFile = "/does/not/exist" }, "is the service account's token mounted?"},
		"no TLS here": {func(c *config) { c.Host = newPlainServer(t) }, "does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			restConfig := f.RESTConfig()
			c.change(restConfig)
			s, err := kubernetes.NewForConfig(restConfig, cfg)
			require.NoError(t, err)
			defer s.Close()
			_, err = s.Write(t.Context(), record("a", 1), "")
			requireUnknown(t, err)
			require.ErrorContains(t, err, c.want)
			err = s.Preflight(t.Context())
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n", "one problem, one line")
		})
	}
}
