package kubetest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProxy_CutByReset(t *testing.T) {
	for kind, writes := range map[FaultKind]int64{FaultDropRequest: 0, FaultDropResponse: 1} {
		server := newFakeServer(t)
		proxy, c := newTestProxy(t, server.file)
		proxy.SetFault(always(Fault{Kind: kind, Cut: CutReset}))
		// HTTP/1.1: a client of HTTP/2 that is writing something of its own hears of the reset there, and reads an end.
		c.http.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		_, err := c.put(t.Context())
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, writes, server.writes.Load())
	}
}

// A frozen connection answers nothing to anybody who shares it; others go on.
func TestProxy_CutByFreeze(t *testing.T) {
	for kind, writes := range map[FaultKind]int64{FaultDropRequest: 0, FaultDropResponse: 1} {
		server := newFakeServer(t)
		proxy, c := newTestProxy(t, server.file)
		_, err := c.put(t.Context())
		require.NoError(t, err)
		proxy.SetFault(always(Fault{Kind: kind, Cut: CutFreeze}))
		require.ErrorIs(t, putWithin(t, c, 100*time.Millisecond), context.DeadlineExceeded)
		proxy.SetFault(nil)
		require.ErrorIs(t, putWithin(t, c, 100*time.Millisecond), context.DeadlineExceeded, "the same connection")
		require.Equal(t, 1+writes, server.writes.Load())
		require.Equal(t, 2, proxy.Count(http.MethodPut, ""), "what is sent into a dead connection does not arrive")

		other, err := newClient(c.access, nil)
		require.NoError(t, err)
		defer other.close()
		code, err := other.put(t.Context())
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
	}
}

// Pings are how a client with HTTP/2 finds out; a proxy that answered them would hide the fault.
func TestProxy_FrozenConnectionAnswersNoPing(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	c.http.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{SendPingTimeout: 50 * time.Millisecond, PingTimeout: 50 * time.Millisecond}
	proxy.SetFault(func(r *http.Request) Fault {
		if r.Method == http.MethodPut {
			return Fault{Kind: FaultDropRequest, Cut: CutFreeze}
		}
		return Fault{}
	})
	ended := openWatch(t, c)
	select {
	case <-ended:
		require.Fail(t, "a silent watch whose pings are answered goes on")
	case <-time.After(300 * time.Millisecond):
	}
	_, err := c.put(t.Context())
	require.ErrorContains(t, err, "client connection lost")
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		require.Fail(t, "the watch shared the connection")
	}
}

func TestProxy_CloseEndsFrozenConnections(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	proxy.SetFault(always(Fault{Kind: FaultDropRequest, Cut: CutFreeze}))
	failed := make(chan error, 1)
	go func() {
		_, err := c.put(t.Context())
		failed <- err
	}()
	require.Eventually(t, func() bool { return proxy.Count("", "") == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, proxy.Close())
	require.Error(t, <-failed)
}

func TestProxy_ReplaceResponse(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	var said atomic.Int64
	proxy.SetFault(always(Fault{
		Kind: FaultReplaceResponse, Status: http.StatusServiceUnavailable, RetryAfter: "7",
		Answered: func(status int) { said.Store(int64(status)) },
	}))
	request, err := c.request(t.Context(), http.MethodPut, "/lease", object{"holder": "a"})
	require.NoError(t, err)
	response, err := c.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "7", response.Header.Get("Retry-After"))
	var status struct {
		Kind string `json:"kind"`
		Code int    `json:"code"`
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&status))
	require.Equal(t, "Status", status.Kind)
	require.Equal(t, http.StatusServiceUnavailable, status.Code)
	require.EqualValues(t, 1, server.writes.Load())
	require.EqualValues(t, http.StatusOK, said.Load())
}

func TestProxy_ForeignStatus(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	proxy.SetFault(always(Fault{Kind: FaultStatus, Status: http.StatusNotFound, Foreign: true}))
	code, answer, err := c.do(t.Context(), http.MethodGet, "/lease", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, "kubetest: injected Not Found\n", string(answer), "nothing that could be taken for a Status")
}

func TestProxy_HalfBody(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	_, whole, err := c.do(t.Context(), http.MethodPut, "/lease", object{"holder": "a"})
	require.NoError(t, err)
	require.Equal(t, `{"holder":"a"}`, strings.TrimSpace(string(whole)))
	proxy.SetFault(always(Fault{Kind: FaultHalfBody}))
	code, half, err := c.do(t.Context(), http.MethodPut, "/lease", object{"holder": "a"})
	require.NoError(t, err, "nothing but the content shows that something is missing")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, `{"holde`, string(half))
	require.EqualValues(t, 2, server.writes.Load())
}

func TestProxy_ResponseDelay(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	const delay = 100 * time.Millisecond
	proxy.SetFault(always(Fault{ResponseDelay: delay}))
	began := time.Now()
	code, err := c.put(t.Context())
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	require.GreaterOrEqual(t, time.Since(began), delay)

	proxy.SetFault(always(Fault{ResponseDelay: time.Minute}))
	require.ErrorIs(t, putWithin(t, c, 50*time.Millisecond), context.DeadlineExceeded)
	require.EqualValues(t, 2, server.writes.Load(), "the write was committed at once")
}

// Answered tells what became of a write whose client had long given up.
func TestProxy_AnsweredAfterTheClientsError(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	_, err := c.put(t.Context()) // opens the connection
	require.NoError(t, err)
	answers := make(chan int, 1)
	proxy.SetFault(always(Fault{Kind: FaultDropResponse, Delay: 200 * time.Millisecond, Answered: func(status int) { answers <- status }}))
	require.ErrorIs(t, putWithin(t, c, 50*time.Millisecond), context.DeadlineExceeded)
	require.Empty(t, answers)
	select {
	case status := <-answers:
		require.Equal(t, http.StatusOK, status)
	case <-time.After(5 * time.Second):
		require.Fail(t, "never answered")
	}
}

func TestProxy_HalfAnEventOfAWatch(t *testing.T) {
	const event = `{"type":"ADDED","object":{}}`
	server := newFakeServer(t)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, event)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	proxy, c := newTestProxy(t, server.file)
	proxy.SetFault(always(Fault{Kind: FaultHalfBody}))
	_, got, err := c.do(t.Context(), http.MethodGet, "/leases?watch=1", nil)
	require.NoError(t, err)
	require.Equal(t, event[:len(event)/2], string(got))
}
