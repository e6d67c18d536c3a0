package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestPreflight_Requests(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	require.NoError(t, s.Preflight(t.Context()))
	require.Equal(t, []string{"get", "patch", "update", "watch"}, f.Made())

	mustWrite(t, s, record("a", 1), "")
	f.ResetCalls()
	require.NoError(t, s.Preflight(t.Context()))
	require.Equal(t, []string{"get", "patch", "watch"}, f.Made())
}

func TestPreflight_NamesEachMissingRight(t *testing.T) {
	for _, present := range []bool{false, true} {
		for _, c := range []struct {
			verbs string
			want  []string // cannot VERB, by line
		}{
			{"get", []string{"cannot get"}},
			{"patch", []string{"cannot patch"}},
			{"watch", []string{"cannot watch"}},
			{"update", []string{"cannot update"}},
			{"create", []string{"cannot create"}},
			{"patch watch", []string{"cannot patch", "cannot watch"}},
			{"get patch watch", []string{"cannot get", "cannot patch", "cannot watch"}},
			{"get update patch watch create", []string{"cannot get", "cannot patch", "cannot update", "cannot watch"}},
		} {
			f := kubefake.New(t)
			s := newStore(t, f)
			if present {
				mustWrite(t, s, record("a", 1), "")
			}
			for verb := range strings.FieldsSeq(c.verbs) {
				f.Forbidden[verb] = true
			}
			err := s.Preflight(t.Context())
			if present && (c.verbs == "update" || c.verbs == "create") {
				require.NoError(t, err, "a lease that exists need not be created")
				continue
			}
			require.Error(t, err, c.verbs)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(c.want), "%s: %v", c.verbs, err)
			for i, want := range c.want {
				require.Contains(t, lines[i], want)
				require.Contains(t, lines[i], "resourceNames [payments-sbr]")
			}
		}
	}
}

func TestPreflight_Namespace(t *testing.T) {
	cfg := testConfig()
	cfg.Namespace = "nowhere"
	err := newStoreWith(t, kubefake.New(t), cfg).Preflight(t.Context())
	require.ErrorContains(t, err, "the namespace does not exist")
	require.NotContains(t, err.Error(), "\n")
}

func TestPreflight_ForeignLease(t *testing.T) {
	f := kubefake.New(t)
	s := newStore(t, f)
	f.Put(testName, object{"spec": object{"holderIdentity": "controller-7"}})
	require.ErrorContains(t, s.Preflight(t.Context()), `is held by "controller-7"`)

	f.Put(testName, object{"metadata": object{"annotations": object{kubernetes.Annotation: "junk"}},
		"spec": object{}})
	require.ErrorContains(t, s.Preflight(t.Context()), "not readable")

	f.Put(testName, object{"spec": object{}})
	require.NoError(t, s.Preflight(t.Context()), "created by an operator beforehand")
}

// DryRun is what a member may afford while the cluster is whole: one request, two where there is no lease,
// and nothing is written.
func TestDryRun(t *testing.T) {
	for _, c := range []struct {
		name, forbidden string
		present         bool
		requests        int
		want            string
	}{
		{"present", "", true, 1, ""},
		{"absent", "", false, 2, ""},
		{"present, no patch", "patch", true, 1, "cannot patch"},
		{"present, no create", "create", true, 1, ""},
		{"absent, no create", "create", false, 2, "cannot create"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := kubefake.New(t)
			s := newStore(t, f)
			if c.present {
				mustWrite(t, s, record("a", 1), "")
			}
			if c.forbidden != "" {
				f.Forbidden[c.forbidden] = true
			}
			requests := 0
			f.Hook = func(_ http.ResponseWriter, r *http.Request) bool {
				requests++
				require.Equal(t, "All", r.URL.Query().Get("dryRun"))
				return false
			}
			err := s.DryRun(t.Context())
			require.Equal(t, c.requests, requests)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestPreflight_SaysWhenToComeAgain(t *testing.T) {
	f := kubefake.New(t)
	f.Hook = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return true
	}
	for name, try := range map[string]func() error{
		"preflight": func() error { return newStore(t, f).Preflight(t.Context()) },
		"read":      func() error { _, err := newStore(t, f).Read(t.Context()); return err },
	} {
		err := try()
		var later interface{ RetryAfter() time.Duration }
		require.ErrorAs(t, err, &later, "%s: %v", name, err)
		require.Equal(t, 7*time.Second, later.RetryAfter())
	}
}
