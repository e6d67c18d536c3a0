package fence

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

var _ interface{ Token() uint64 } = (*lease.Lease)(nil)

// echo answers with the token in its context and the body.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	token, carried := FromContext(r.Context())
	body, err := io.ReadAll(r.Body)
	w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusEarlyHints)
	}
	w.WriteHeader(http.StatusCreated)
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%d %t %s %v", token, carried, body, err)
})

func TestHandler_Statuses(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		tokens []string
		body   string
		status int
		want   string // in the answer
		newest uint64 // afterwards; it was 5
	}{
		"newer":                  {"POST", []string{"7"}, "work", 201, "7 true work <nil>", 7},
		"equal":                  {"PUT", []string{"5"}, "work", 201, "5 true work <nil>", 5},
		"stale":                  {"POST", []string{"4"}, "work", 412, `4 is older than 5`, 5},
		"stale delete":           {"DELETE", []string{"4"}, "", 412, `4 is older than 5`, 5},
		"missing":                {"POST", nil, "work", 428, "the header Fencing-Token is missing", 5},
		"missing, other method":  {"PATCH", nil, "work", 428, "the header Fencing-Token is missing", 5},
		"empty":                  {"POST", []string{""}, "work", 400, "want a decimal number", 5},
		"zero":                   {"POST", []string{"0"}, "work", 400, "want a decimal number", 5},
		"malformed":              {"POST", []string{"5a"}, "work", 400, "5a", 5},
		"two":                    {"POST", []string{"5", "6"}, "work", 400, "2 times", 5},
		"too large a body":       {"POST", []string{"7"}, strings.Repeat("x", MaxBody+1), 413, "too large", 5},
		"the largest body":       {"POST", []string{"7"}, strings.Repeat("x", MaxBody), 201, "xxx <nil>", 7},
		"stale, a body too long": {"POST", []string{"4"}, strings.Repeat("x", MaxBody+1), 412, `4 is older than 5`, 5},
		"a look":                 {"GET", nil, "", 201, "0 false  <nil>", 5},
		"a look, new owner":      {"GET", []string{"8"}, "", 201, "8 true  <nil>", 8},
		"a look, stale":          {"GET", []string{"4"}, "", 412, `4 is older than 5`, 5},
		"a look, malformed":      {"OPTIONS", []string{"x"}, "", 400, "want a decimal number", 5},
	} {
		t.Run(name, func(t *testing.T) {
			f := New()
			require.NoError(t, f.Check(t.Context(), 5))
			r := httptest.NewRequest(c.method, "/", strings.NewReader(c.body))
			r.Header[Header] = c.tokens
			w := httptest.NewRecorder()
			Handler(f, echo).ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.want)
			require.Equal(t, c.newest, f.Newest())
			if c.status == http.StatusCreated {
				require.NotEmpty(t, w.Header().Get("X-Length"))
				return
			}
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.Equal(t, 1, strings.Count(w.Body.String(), "\n"))
			var body refusal
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
			if c.status == http.StatusPreconditionFailed {
				require.Equal(t, []uint64{4, 5}, []uint64{body.Token, body.Newest})
			}
		})
	}
}

func TestHandler_AnEmptyAnswerIsOne(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/", nil)
	Set(r, 1)
	Handler(New(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Done", "yes") })).ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "yes", w.Header().Get("X-Done"))
}

func TestError_WhatTheStorageSaysIs503(t *testing.T) {
	f, err := Open(&shelf{failAfter: errEffect})
	require.NoError(t, err)
	r, w := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
	Set(r, 1)
	Handler(f, echo).ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), errEffect.Error())
}

// A writer that stands still in the middle of its request, as a paused process does, must not keep its
// successor out; nor is its request carried out when it goes on.
func TestHandler_AClientThatStandsStillKeepsNobodyOut(t *testing.T) {
	f := New()
	var written bytes.Buffer // guarded by the fence
	server := httptest.NewServer(Handler(f, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&written, r.Body)
	})))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\n%s: 1\r\nContent-Length: 8\r\n\r\nold ", Header)

	client := &http.Client{Transport: &Transport{}, Timeout: time.Minute}
	post := func(token uint64, body string) *http.Response {
		r, err := http.NewRequestWithContext(WithToken(t.Context(), token), "POST", server.URL,
			strings.NewReader(body))
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
	require.Equal(t, http.StatusOK, post(2, "new").StatusCode)

	fmt.Fprint(conn, "work")
	late, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, late.Body.Close())
	require.Equal(t, http.StatusPreconditionFailed, late.StatusCode)
	require.Equal(t, &StaleError{Newest: 2}, FromResponse(late))

	resp := post(1, "old work")
	require.Equal(t, &StaleError{Token: 1, Newest: 2}, FromResponse(resp))
	client.CloseIdleConnections()
	require.Equal(t, "new", written.String())
}

func TestFromResponse_OtherAnswersAreNoRefusals(t *testing.T) {
	for _, r := range []*http.Response{
		{StatusCode: 200, Header: http.Header{Header: {"5"}}},
		{StatusCode: 428, Header: http.Header{Header: {"5"}}},
		{StatusCode: 412, Header: http.Header{}},
		{StatusCode: 412, Header: http.Header{Header: {"x"}}},
	} {
		require.NoError(t, FromResponse(r))
	}
	require.ErrorIs(t, FromResponse(&http.Response{StatusCode: 412, Header: http.Header{Header: {"5"}}}),
		ErrStale)
}

// wire is a RoundTripper that only notes the token that was sent.
type wire struct{ sent []string }

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.sent = append(w.sent, r.Header.Get(Header))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// body notes that it was closed, which a RoundTripper owes also to a request that it does not send.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

type holder uint64

func (h holder) Token() uint64 { return uint64(h) }

func TestTransport_SendsTheTokenOfThePresentRun(t *testing.T) {
	with := func(token uint64) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request { return r.WithContext(WithToken(r.Context(), token)) }
	}
	set := func(token uint64) func(*http.Request) *http.Request {
		return func(r *http.Request) *http.Request { Set(r, token); return r }
	}
	for name, c := range map[string]struct {
		source  Source
		request func(*http.Request) *http.Request
		sent    string
		want    error
	}{
		"held":                              {source: Of(holder(7)), sent: "7"},
		"lost":                              {source: Of(holder(0)), want: ErrNoToken},
		"lost, the request has one":         {source: Of(holder(0)), request: with(7), want: ErrNoToken},
		"an impossible source":              {source: func() (uint64, bool) { return 0, true }, want: ErrToken},
		"the context's, same run":           {source: Of(holder(7)), request: with(7), sent: "7"},
		"the context's, an earlier run":     {source: Of(holder(7)), request: with(6), want: ErrStale},
		"the header's, same run":            {source: Of(holder(7)), request: set(7), sent: "7"},
		"the header's, an earlier run":      {source: Of(holder(7)), request: set(6), want: ErrStale},
		"no source, none":                   {want: ErrNoToken},
		"no source, the context's":          {request: with(3), sent: "3"},
		"no source, the header's":           {request: set(3), sent: "3"},
		"no source, a zero in the context":  {request: with(0), want: ErrToken},
		"a zero in the header":              {source: Of(holder(7)), request: set(0), want: ErrToken},
		"no source, too large in a context": {request: with(Max + 1), want: ErrToken},
	} {
		t.Run(name, func(t *testing.T) {
			sent, content := &wire{}, &body{Reader: strings.NewReader("x")}
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://orders", content)
			require.NoError(t, err)
			if c.request != nil {
				r = c.request(r)
			}
			before := r.Header.Clone()
			resp, err := (&Transport{Source: c.source, Base: sent}).RoundTrip(r)
			require.Equal(t, before, r.Header, "a RoundTripper must not change the request")
			require.ErrorIs(t, err, c.want)
			if c.want != nil {
				require.Nil(t, resp)
				require.Empty(t, sent.sent)
				require.True(t, content.closed)
				return
			}
			require.NoError(t, resp.Body.Close())
			require.Equal(t, []string{c.sent}, sent.sent)
		})
	}
}

// Each hop of a redirect is a request of its own; a run that ends between two of them sends no more.
func TestTransport_AskedAtEachRedirect(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get(Header))
		http.Redirect(w, r, "/next", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	tokens := []uint64{4, 4, 0}
	client := &http.Client{Transport: &Transport{Source: func() (uint64, bool) {
		token := tokens[0]
		tokens = tokens[1:]
		return token, token != 0
	}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.ErrorIs(t, err, ErrNoToken)
	require.Equal(t, []string{"4", "4"}, seen)
}

// The handler's work is inside of the fence: while it goes on for one owner, the next one waits.
func TestHandler_NextRunsInsideOfTheFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, finish := make(chan uint64, 2), make(chan struct{})
		h := Handler(New(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			token, _ := FromContext(r.Context())
			begun <- token
			<-finish
		}))
		for _, token := range []uint64{1, 2} {
			go func() {
				r := httptest.NewRequest("POST", "/", nil)
				Set(r, token)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}()
			synctest.Wait()
		}
		require.Len(t, begun, 1)
		close(finish)
		synctest.Wait()
		require.Equal(t, []uint64{1, 2}, []uint64{<-begun, <-begun})
	})
}

func TestHandler_APanicLeavesTheTurnToOthers(t *testing.T) {
	f := New()
	h := Handler(f, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	r := httptest.NewRequest("POST", "/", nil)
	Set(r, 1)
	require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { h.ServeHTTP(httptest.NewRecorder(), r) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, f.Check(ctx, 2))
}

// A body that breaks off is not carried out.
func TestHandler_ABodyThatBreaksOff(t *testing.T) {
	f := New()
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("half"), broken{}))
	Set(r, 1)
	w := httptest.NewRecorder()
	Handler(f, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") })).ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "broke off")
	require.Zero(t, f.Newest())
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broke off") }
