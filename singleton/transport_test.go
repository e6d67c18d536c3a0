package singleton_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/singleton"
)

// hosts are the places that requests are sent to: each answers with its name, a closed one takes no
// connection.
type hosts struct {
	mu     sync.Mutex
	gone   map[string]bool
	not    map[string]bool // these say that it does not run there
	served []string
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var body string
	if r.Body != nil {
		all, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(all)
	}
	if h.gone[r.URL.Hostname()] {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	if h.not[r.URL.Hostname()] {
		return &http.Response{StatusCode: http.StatusMisdirectedRequest, Body: io.NopCloser(strings.NewReader(""))},
			nil
	}
	h.served = append(h.served, r.Method+" "+r.URL.String()+" "+body)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(r.URL.Hostname()))},
		nil
}

func endpoints(name string, c *singleton.Config) { c.Endpoint = "http://" + name + ":80/api" }

func post(ctx context.Context, t *singleton.Transport, path, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://backup"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestTransport_GoesToTheHolderAndWaitsForTheNext(t *testing.T) {
	with(t, 3, endpoints, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		h := &hosts{gone: make(map[string]bool)}
		tr := singleton.NewTransport(c.managers["n3"].Locator())
		tr.Base = h
		got, err := post(t.Context(), tr, "/jobs?all=1", "x")
		require.NoError(t, err)
		require.Equal(t, "n1", got)

		h.gone["n1"] = true // it takes no more connections before anybody has heard that it hands over
		answer := make(chan string)
		go func() {
			got, err := post(t.Context(), tr, "/jobs", "kept")
			answer <- got + errorText(err)
		}()
		time.Sleep(time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		require.Equal(t, "n2", <-answer)
		require.Equal(t, []string{"POST http://n1:80/api/jobs?all=1 x", "POST http://n2:80/api/jobs kept"},
			h.served, "nothing is sent twice")
	})
}

// A member says that it does not run there, or not yet: nothing was done, so the request waits.
func TestTransport_AMisdirectedRequestWaits(t *testing.T) {
	with(t, 1, endpoints, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		h := &hosts{not: map[string]bool{"n1": true}}
		tr := singleton.NewTransport(c.managers["n1"].Locator())
		tr.Base, tr.MaxBody = h, 5
		answer := make(chan string)
		go func() {
			got, err := post(t.Context(), tr, "/", "kept")
			answer <- got + errorText(err)
		}()
		time.Sleep(time.Second)
		_, err := post(t.Context(), tr, "/", "too long to be kept")
		require.NoError(t, err, "it gets the answer as it is")
		h.mu.Lock()
		h.not = nil
		h.mu.Unlock()
		require.Equal(t, "n1", <-answer)
		require.Equal(t, []string{"POST http://n1:80/api/ kept"}, h.served)
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

func TestTransport_WaitsInBounds(t *testing.T) {
	with(t, 1, func(_ string, c *singleton.Config) { c.Role = "nobody" }, func(t *testing.T, c *crew) {
		tr := singleton.NewTransport(c.managers["n1"].Locator())
		tr.Base, tr.MaxWaiting, tr.MaxWait = &hosts{}, 1, 5*time.Second
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := post(t.Context(), tr, "/", "")
			require.ErrorIs(t, err, singleton.ErrNowhere)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, 5*time.Second, time.Since(began))
		})
		time.Sleep(time.Second)
		_, err := post(t.Context(), tr, "/", "")
		require.ErrorIs(t, err, singleton.ErrBusy)
		wg.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		gaveUp := errors.New("the caller gave up")
		cancel(gaveUp)
		_, err = post(ctx, tr, "/", "")
		require.ErrorIs(t, err, gaveUp)
	})
}

func TestTransport_WithoutAnEndpoint(t *testing.T) {
	with(t, 1, nil, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		_, err := post(t.Context(), singleton.NewTransport(c.managers["n1"].Locator()), "/", "")
		require.ErrorIs(t, err, singleton.ErrNoEndpoint)
		require.ErrorContains(t, err, `n1 says ""`)
	})
}
