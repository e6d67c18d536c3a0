package locate

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path goes below the endpoint's own path as it was escaped.
func TestRewrite_KeepsThePathAsItIsEscaped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ endpoint, path, want string }{
		{"http://h:80", "/100%25?all=1", "http://h:80/100%25?all=1"},
		{"http://h:80/", "/100%25", "http://h:80/100%25"},
		{"http://h:80/api", "/100%25?all=1", "http://h:80/api/100%25?all=1"},
		{"http://h:80/", "/a%2Fb", "http://h:80/a%2Fb"},
		{"http://h:80/api/", "/a%2525", "http://h:80/api/a%2525"},
		{"http://h:80/api", "/", "http://h:80/api/"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://backup"+c.path, nil)
		require.NoError(t, err)
		out, err := rewrite(r, Location{Endpoint: c.endpoint}, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, out.URL.String(), c)
	}
}

// A body is kept, to be sent again, if its length is known and small.
func TestKeep_OnlyABodyOfKnownLength(t *testing.T) {
	t.Parallel()
	o := Limits{MaxBody: 5}
	for _, c := range []struct {
		body  io.Reader
		kept  string
		again bool
	}{
		{nil, "", true},
		{http.NoBody, "", true},
		{strings.NewReader("small"), "small", true},
		{strings.NewReader("larger"), "", false},
		{io.MultiReader(strings.NewReader("of a length that nobody knows")), "", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://backup", c.body)
		require.NoError(t, err)
		kept, again, err := o.keep(r)
		require.NoError(t, err)
		require.Equal(t, c.kept, string(kept))
		require.Equal(t, c.again, again)
	}
}
