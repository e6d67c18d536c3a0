package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// The outcomes of a request to down a member.
const (
	OutcomeDowned  = "downed"
	OutcomeRefused = "refused"
	OutcomeUnknown = "unknown"
)

// DownRequest is what POST /down takes.
type DownRequest struct {
	// Member is the node name or the incarnation.
	Member string `json:"member"`
	// Reason is the operator's, one line, and may be empty.
	Reason string `json:"reason"`
}

// DownAnswer is what POST /down answers: with 200 where the member is downed, with 409 where nothing was
// decided, with 504 where the outcome is unknown.
type DownAnswer struct {
	Outcome string `json:"outcome"`
	// Message says why the member is not downed, or may not be.
	Message string `json:"message"`
}

// maxDownRequest bounds the body of a request.
const maxDownRequest = 4 << 10

// down answers once the resolver has decided, however long that takes: it has a deadline of its own. open
// says that every client that reaches this address could ask: then all requests are refused.
func (s *Server) down(down func(ctx context.Context, member, reason string) error, open bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
		case open:
			http.Error(w, "members are not downed through an address that everybody reaches: set http.token-file, or listen on 127.0.0.1", http.StatusForbidden)
			return
		case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
			http.Error(w, "members are downed by sbr down, not by a web page", http.StatusForbidden)
			return
		case err != nil || kind != "application/json":
			http.Error(w, "the request must be application/json: use sbr down", http.StatusUnsupportedMediaType)
			return
		}
		request, err := readDownRequest(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c := http.NewResponseController(w)
		// where they cannot be set the caller hears nothing
		_, _ = c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{})
		s.log.Warn("sbr: asked over HTTP to down a member", "member", request.Member, "reason", request.Reason,
			"peer", r.RemoteAddr)
		answer, status := DownAnswer{Outcome: OutcomeDowned}, http.StatusOK
		if err := down(r.Context(), request.Member, request.Reason); err != nil {
			answer, status = DownAnswer{Outcome: OutcomeUnknown,
				Message: oneLine(strings.TrimPrefix(err.Error(), "downing: "))}, http.StatusGatewayTimeout
			if errors.Is(err, downing.ErrDownRefused) {
				answer.Outcome, status = OutcomeRefused, http.StatusConflict
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the client may have gone
	})
}

func readDownRequest(body io.Reader) (request DownRequest, err error) {
	d := json.NewDecoder(io.LimitReader(body, maxDownRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return request, fmt.Errorf("the request is not what sbr down sends: %w", err)
	}
	if request.Member == "" {
		return request, errors.New("which member? the request names none")
	}
	return request, nil
}
