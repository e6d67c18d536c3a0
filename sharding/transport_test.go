package sharding_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sharding"
)

// members answer for the shards that run on them, and with 421 for others.
type members struct {
	*register
	mu          sync.Mutex
	misdirected int
}

func (m *members) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	resp := &http.Response{StatusCode: http.StatusOK,
		Body: io.NopCloser(strings.NewReader(r.URL.Host + " " + string(body)))}
	m.register.mu.Lock()
	runs := m.running[r.URL.Path[1:]] == r.URL.Host
	m.register.mu.Unlock()
	if !runs {
		m.mu.Lock()
		m.misdirected++
		m.mu.Unlock()
		resp.StatusCode = http.StatusMisdirectedRequest
	}
	return resp, nil
}

func byPath(r *http.Request) string { return r.URL.Path[1:] }

// put sends a request to a shard.
func put(t *testing.T, tr *sharding.Transport, shard, body string) (string, error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://orders/"+shard,
		strings.NewReader(body))
	require.NoError(t, err)
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.Status + string(b), err
}

// Requests wait while their shard moves, and the others go on. None is lost, whatever the sender knows.
func TestTransport_NoRequestIsLostWhileShardsMove(t *testing.T) {
	eachWay(t, 3, 24, func(t *testing.T, c *crew) {
		time.Sleep(time.Minute)
		m := &members{register: &c.register}
		tr := sharding.NewTransport(c.managers["n1"], byPath)
		tr.Base = m
		stop := make(chan struct{})
		var clients sync.WaitGroup
		var mu sync.Mutex
		sent, slowest := 0, time.Duration(0)
		var failed []string
		for _, shard := range sharding.Numbered(24) {
			clients.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					began := time.Now()
					got, err := put(t, tr, shard, "x")
					mu.Lock()
					sent, slowest = sent+1, max(slowest, time.Since(began))
					if err != nil || !strings.HasSuffix(got, " x") {
						failed = append(failed, got+errorText(err))
					}
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Second)
		require.NoError(t, c.managers["n3"].Stop(t.Context()))
		time.Sleep(time.Second)
		close(stop)
		clients.Wait()
		t.Logf("%d sent, %d asked the wrong member first, the slowest took %v", sent, m.misdirected, slowest)
		require.Empty(t, failed[:min(3, len(failed))])
		require.Zero(t, c.register.on()["n3"])
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

func TestTransport_AShardThatDoesNotExist(t *testing.T) {
	m, err := sharding.New(provider(t), sharding.Config{Type: "orders", Shards: []string{"a"}})
	require.NoError(t, err)
	_, err = put(t, sharding.NewTransport(m, byPath), "b", "")
	require.ErrorIs(t, err, sharding.ErrNoShard)
	_, err = put(t, sharding.NewTransport(m, byPath), "a", "")
	require.ErrorContains(t, err, "was not started")
}
