package kubetest

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeServer stands in for the API server: what the proxy does to a request does not depend on who answers.
type fakeServer struct {
	writes atomic.Int64
	http2  atomic.Bool
	file   string
	*httptest.Server
}

func newFakeServer(t *testing.T) *fakeServer {
	f := &fakeServer{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.http2.Store(r.ProtoMajor == 2)
		switch Verb(r) {
		case VerbWatch:
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			f.writes.Add(1)
			_, _ = w.Write(body)
		}
	}))
	f.EnableHTTP2 = true
	f.StartTLS()
	t.Cleanup(f.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	var err error
	f.file, err = access{server: f.URL, authority: authority, token: "token"}.write(t.TempDir())
	require.NoError(t, err)
	return f
}

func newTestProxy(t *testing.T, kubeconfig string) (*Proxy, *client) {
	proxy := NewProxy(t, kubeconfig)
	a, err := readAccess(proxy.Kubeconfig())
	require.NoError(t, err)
	c, err := newClient(a, nil)
	require.NoError(t, err)
	t.Cleanup(c.close)
	return proxy, c
}

func always(fault Fault) func(*http.Request) Fault {
	return func(*http.Request) Fault { return fault }
}

func (c *client) put(ctx context.Context) (int, error) {
	code, _, err := c.do(ctx, http.MethodPut, "/lease", object{"holder": "a"})
	return code, err
}

func TestProxy_CountsByVerbAndPath(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPut, http.MethodPatch,
		http.MethodPost, http.MethodDelete} {
		_, _, err := c.do(t.Context(), method, "/lease?timeout=5s", nil)
		require.NoError(t, err)
	}
	require.Equal(t, map[Call]int{
		{http.MethodGet, "/lease"}: 1, {http.MethodPut, "/lease"}: 2, {http.MethodPatch, "/lease"}: 1,
		{http.MethodPost, "/lease"}: 1, {http.MethodDelete, "/lease"}: 1,
	}, proxy.Counts())
	require.True(t, server.http2.Load())
}

func TestProxy_WatchStreamsOverHTTP2(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	request, err := c.request(t.Context(), http.MethodGet, "/leases?watch=1", "", nil)
	require.NoError(t, err)
	// The fake sends headers and then nothing: this returns only if the proxy does not wait for a body.
	response, err := c.http.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 2, response.ProtoMajor)
	require.Equal(t, map[Call]int{{VerbWatch, "/leases"}: 1}, proxy.Counts())

	server.CloseClientConnections()
	_, err = io.ReadAll(response.Body)
	require.Error(t, err, "a server that dies ends the watch with an error, not with a clean end")
}

// What a client is told of a write, and whether it was made.
func TestProxy_WhatBecomesOfAWrite(t *testing.T) {
	const delay, whole = 100 * time.Millisecond, `{"holder":"a"}`
	for name, c := range map[string]struct {
		fault  Fault
		code   int // zero: an error
		body   string
		after  string // the header Retry-After
		writes int64
		takes  time.Duration
	}{
		"nothing": {code: 200, body: whole, writes: 1},
		"answered instead": {
			fault: Fault{Kind: FaultStatus, Status: 429, RetryAfter: "0"}, code: 429, body: `"code":429`, after: "0",
		},
		"request lost":  {fault: Fault{Kind: FaultDropRequest}},
		"response lost": {fault: Fault{Kind: FaultDropResponse}, writes: 1},
		"late":          {fault: Fault{Delay: delay}, code: 200, body: whole, writes: 1, takes: delay},
	} {
		t.Run(name, func(t *testing.T) {
			server := newFakeServer(t)
			proxy, client := newTestProxy(t, server.file)
			proxy.SetFault(always(c.fault))
			request, err := client.request(t.Context(), http.MethodPut, "/lease", "application/json", []byte(whole))
			require.NoError(t, err)
			began := time.Now()
			response, err := client.http.Do(request)
			require.Equal(t, c.code == 0, err != nil, "%v", err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			if err == nil {
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				require.NoError(t, err)
				require.Equal(t, c.code, response.StatusCode)
				require.Contains(t, string(body), c.body)
				require.Equal(t, c.after, response.Header.Get("Retry-After"))
			}
			require.GreaterOrEqual(t, time.Since(began), c.takes)
			require.Equal(t, c.writes, server.writes.Load())
			require.Equal(t, map[Call]int{{http.MethodPut, "/lease"}: 1}, proxy.Counts(), "whatever became of it")
		})
	}
}

func TestProxy_DropClosesTheConnection(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	ended := openWatch(t, c)
	proxy.SetFault(always(Fault{Kind: FaultDropRequest}))
	_, err := c.put(t.Context())
	require.Error(t, err)
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		require.Fail(t, "the watch shared the connection and is still open")
	}
}

func TestProxy_DelayBeyondTheDeadlineIsNotForwarded(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	proxy.SetFault(always(Fault{Delay: 200 * time.Millisecond}))
	require.ErrorIs(t, putWithin(t, c, 50*time.Millisecond), context.DeadlineExceeded)
	time.Sleep(300 * time.Millisecond)
	require.Zero(t, server.writes.Load())
}

func TestProxy_WriteCommittedAfterTheClientsError(t *testing.T) {
	server := newFakeServer(t)
	proxy, c := newTestProxy(t, server.file)
	_, err := c.put(t.Context()) // on a cold connection the client could give up before it has sent anything
	require.NoError(t, err)
	proxy.SetFault(always(Fault{Kind: FaultDropResponse, Delay: 300 * time.Millisecond}))
	require.ErrorIs(t, putWithin(t, c, 50*time.Millisecond), context.DeadlineExceeded)
	require.EqualValues(t, 1, server.writes.Load())

	proxy.SetFault(nil)
	ended := openWatch(t, c)
	require.Eventually(t, func() bool { return server.writes.Load() == 2 }, 5*time.Second, 10*time.Millisecond)
	select {
	case <-ended:
		require.Fail(t, "the late write closed a connection its client had other uses for")
	case <-time.After(100 * time.Millisecond):
	}
}

// openWatch opens a watch and returns a channel that is closed when it ends.
func openWatch(t *testing.T, c *client) <-chan struct{} {
	request, err := c.request(t.Context(), http.MethodGet, "/leases?watch=1", "", nil)
	require.NoError(t, err)
	watch, err := c.http.Do(request)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, watch.Body)
		watch.Body.Close()
	}()
	return ended
}

func TestProxy_DeadServerIsNoGateway(t *testing.T) {
	server := newFakeServer(t)
	_, c := newTestProxy(t, server.file)
	server.Close()
	_, err := c.put(t.Context())
	require.Error(t, err, "a 502 would be an answer")
}

func TestProxy_Kubeconfigs(t *testing.T) {
	server, other := newFakeServer(t), newFakeServer(t)
	proxy, _ := newTestProxy(t, server.file)
	_, err := proxy.KubeconfigFor(other.file)
	require.ErrorContains(t, err, "make it a proxy of its own")
}

func putWithin(t *testing.T, c *client, d time.Duration) error {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := c.put(ctx)
	return err
}
