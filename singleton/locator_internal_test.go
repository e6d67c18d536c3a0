package singleton

import (
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// News may come late and out of order: the run with the largest token is the newest.
func TestLocator_NeverGoesBack(t *testing.T) {
	l := &Locator{changed: make(chan struct{}), backoff: backoff.NewExponentialBackOff()}
	for _, step := range []struct {
		from string
		news whereabouts
		at   string
	}{
		{"n1#a", whereabouts{what: newsRuns, token: 5}, "n1"},
		{"n2#b", whereabouts{what: newsRuns, token: 4}, "n1"},
		{"n2#b", whereabouts{what: newsEnded, token: 4}, "n1"},
		{"n2#b", whereabouts{what: newsEnded, token: 5}, "n1"},
		{"n1#a", whereabouts{what: newsEnded, token: 5}, ""},
		{"n2#b", whereabouts{what: newsRuns, token: 6}, "n2"},
		{"n1#a", whereabouts{what: newsRuns, token: 5}, "n2"},
	} {
		l.heard(sbr.ID(step.from), step.news)
		require.Equal(t, step.at, l.Location().Name, "%+v", step)
		require.Equal(t, step.at == "", !l.askAt.IsZero() && l.askAt.After(time.Time{}), "where it is not known it is asked for")
	}
}
