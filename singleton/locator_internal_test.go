package singleton

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// News may come late and out of order: the run with the largest token is the newest.
func TestLocator_NeverGoesBack(t *testing.T) {
	var l Locator
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
	}
}

// deserted is a cluster in which nobody answers.
type deserted struct {
	Cluster
	mu    sync.Mutex
	asked []time.Time
}

func (d *deserted) Follow(func()) (stop func()) { return func() {} }

func (d *deserted) Serve(string, func(downing.Question)) (stop func(), err error) {
	return func() {}, nil
}

func (d *deserted) Ask(string, sbr.ID, []byte, time.Duration) (<-chan downing.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, time.Now())
	answers := make(chan downing.Answer)
	close(answers)
	return answers, nil
}

// Whoever runs it may not have heard the question: it is asked again, for ever.
func TestLocator_AsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deserted
		l, err := NewLocator(&d, "backup", nil)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		l.Close()
		require.Greater(t, len(d.asked), 100)
		require.WithinDuration(t, time.Now(), d.asked[len(d.asked)-1], whereAtMost)
	})
}

func FuzzDecodeNews(f *testing.F) {
	f.Add(whereabouts{what: newsRuns, token: 7, endpoint: "http://10.0.0.1:8080"}.encode())
	f.Add(whereabouts{what: newsWhere}.encode())
	f.Add([]byte{byte(newsRuns), 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := decodeNews(b)
		if err != nil {
			require.ErrorIs(t, err, errNews)
			return
		}
		again, err := decodeNews(w.encode())
		require.NoError(t, err)
		require.Equal(t, w, again)
	})
}

func TestDecodeNews_RefusesWhatNobodyWrites(t *testing.T) {
	for _, b := range [][]byte{nil, {0, 1}, {9, 1}, {byte(newsRuns)}, append([]byte{byte(newsRuns), 1}, strings.Repeat("x", MaxEndpoint+1)...),
		{byte(newsEnded), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		_, err := decodeNews(b)
		require.ErrorIs(t, err, errNews, "%v", b)
	}
}
