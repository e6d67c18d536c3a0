package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// downs is a provider that answers by the name of the member.
func downs(_ context.Context, member, reason string) error {
	switch member {
	case "n4":
		return nil
	case "n5":
		return fmt.Errorf("%w: n5 is no member here (%s)", downing.ErrDownRefused, reason)
	default:
		return errors.New("downing: it is not known whether n6 is downed: the lease store\ngave no answer")
	}
}

// What became of the member is said by the status and in words; requests that no sbr down sends are refused.
func TestDown(t *testing.T) {
	noLeaks(t)
	_, url := served(t, Options{Source: whole(3), Down: downs})
	const n4 = `{"member": "n4", "reason": "its disk is broken"}`
	for name, tc := range map[string]struct {
		body   string
		header []string
		status int
		answer string
	}{
		"downed":         {n4, nil, 200, `{"outcome":"downed","message":""}`},
		"refused":        {`{"member": "n5", "reason": "why"}`, nil, 409, `{"outcome":"refused","message":"refused: n5 is no member here (why)"}`},
		"unknown":        {`{"member": "n6"}`, nil, 504, `{"outcome":"unknown","message":"it is not known whether n6 is downed: the lease store gave no answer"}`},
		"no member":      {`{"reason": "why"}`, nil, 400, "which member?"},
		"no JSON":        {`n4`, nil, 400, "not what sbr down sends"},
		"another key":    {`{"member": "n4", "force": true}`, nil, 400, "not what sbr down sends"},
		"too long":       {`{"member": "n4", "reason": "` + strings.Repeat("x", maxDownRequest) + `"}`, nil, 400, "not what sbr down sends"},
		"a form":         {n4, []string{"Content-Type", "text/plain"}, 415, "use sbr down"},
		"a web page":     {n4, []string{"Origin", "http://127.0.0.1"}, 403, "not by a web page"},
		"a browser":      {n4, []string{"Sec-Fetch-Site", "same-origin"}, 403, "not by a web page"},
		"another host's": {n4, []string{"Host", "evil.example"}, 421, "answers to localhost only"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := posted(t, url+"/down", tc.body, tc.header...)
			require.Equal(t, tc.status, status, answer)
			require.Contains(t, answer, tc.answer)
		})
	}
	status, body, h := get(t, "GET", url+"/down")
	require.Equal(t, 405, status)
	require.Contains(t, body, "members are downed here, by sbr down: use POST")
	require.Equal(t, "POST", h.Get("Allow"))
}

// Where others than this machine reach the address, a token is needed: without one configured nobody downs
// anybody.
func TestDown_Token(t *testing.T) {
	noLeaks(t)
	const n4 = `{"member": "n4"}`
	s, _ := served(t, Options{Listen: "0.0.0.0:0", Source: whole(3), Down: downs})
	_, port, _ := strings.Cut(strings.TrimPrefix(s.Addr().String(), "[::]"), ":")
	status, body := posted(t, "http://127.0.0.1:"+port+"/down", n4)
	require.Equal(t, 403, status)
	require.Contains(t, body, "set http.token-file, or listen on 127.0.0.1")

	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("s3cret\n"), 0o600))
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		s, _ := served(t, Options{Listen: listen, TokenFile: path, Source: whole(3), Down: downs})
		_, port, _ := strings.Cut(strings.TrimPrefix(s.Addr().String(), "[::]"), ":")
		url := "http://127.0.0.1:" + port + "/down"
		status, _ = posted(t, url, n4)
		require.Equal(t, 401, status)
		status, _ = posted(t, url, n4, "Authorization", "Bearer wrong")
		require.Equal(t, 401, status)
		status, _ = posted(t, url, n4, "Authorization", "Bearer s3cret")
		require.Equal(t, 200, status)
	}
}

// deadlines notes until when a connection may be used.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error  { d.set = append(d.set, at); return nil }
func (d *deadlines) SetWriteDeadline(at time.Time) error { d.set = append(d.set, at); return nil }

// A decision may take longer than what is asked for otherwise: the times of the server do not end it.
func TestDown_TakesItsTime(t *testing.T) {
	s := &Server{log: slog.New(slog.DiscardHandler)}
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodPost, "/down", strings.NewReader(`{"member": "n4"}`))
	r.Header.Set("Content-Type", "application/json")
	s.down(downs, false).ServeHTTP(w, r)
	require.Equal(t, 200, w.Code)
	require.Equal(t, []time.Time{{}, {}}, w.set)
}
