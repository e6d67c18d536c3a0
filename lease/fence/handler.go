package fence

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
)

// MaxBody is the largest request body that Handler takes, in bytes. Larger ones need Do in a handler of one's
// own.
const MaxBody = 1 << 20

// Handler lets a request through to next if f accepts the token in its header, and answers with Error
// otherwise.
//
// GET, HEAD, OPTIONS and TRACE change nothing: without a token they pass, with one they raise the fence
// before next runs. All others need a token. next runs inside Do, with the token in its context
// (FromContext); the whole body is read before, at most MaxBody, and what next answers is sent afterwards. So
// next cannot stream, hijack or flush.
func Handler(f *Fence, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := FromRequest(r)
		switch {
		case safe(r.Method) && errors.Is(err, ErrNoToken):
			next.ServeHTTP(w, r)
			return
		case err == nil && safe(r.Method):
			err = f.Check(r.Context(), token)
		case err == nil:
			err = f.refuse(token) // before a body is sent for nothing
		}
		if err != nil {
			Error(w, err)
			return
		}
		r = r.WithContext(WithToken(r.Context(), token))
		if safe(r.Method) {
			next.ServeHTTP(w, r)
			return
		}
		guard(f, token, next, w, r)
	})
}

// guard runs next inside f, and whatever depends on the client outside of it.
func guard(f *Fence, token uint64, next http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		status := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		answer(w, status, refusal{Error: "fence: the body cannot be read: " + err.Error()})
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	later := &deferred{header: http.Header{}}
	err = f.Do(r.Context(), token, func() error {
		next.ServeHTTP(later, r)
		return nil
	})
	if err != nil {
		Error(w, err)
		return
	}
	later.send(w)
}

func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace},
		method)
}

// refusal is the body of an answer that is not next's.
type refusal struct {
	Error  string `json:"error"`
	Token  uint64 `json:"token,omitempty"`
	Newest uint64 `json:"newest,omitempty"`
}

// Error answers a request that was not admitted, for handlers that use Do themselves: 428 when err wraps
// ErrNoToken, 400 for ErrToken, 412 for a *StaleError, and 503 for everything else. The body is one line of
// JSON with the error and, if stale, both tokens; the newest one is in the header Header as well.
func Error(w http.ResponseWriter, err error) {
	body, status := refusal{Error: err.Error()}, http.StatusServiceUnavailable
	stale, isStale := errors.AsType[*StaleError](err)
	switch {
	case isStale:
		status = http.StatusPreconditionFailed
		body.Token, body.Newest = stale.Token, stale.Newest
		w.Header().Set(Header, Format(stale.Newest))
	case errors.Is(err, ErrNoToken):
		status = http.StatusPreconditionRequired
	case errors.Is(err, ErrToken):
		status = http.StatusBadRequest
	}
	answer(w, status, body)
}

func answer(w http.ResponseWriter, status int, body refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone does not mind
}

// deferred is an answer that is sent later.
type deferred struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (d *deferred) Header() http.Header { return d.header }

func (d *deferred) WriteHeader(status int) {
	if d.status == 0 && status >= http.StatusOK { // an early hint has no receiver yet
		d.status = status
	}
}

func (d *deferred) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return d.body.Write(p)
}

func (d *deferred) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), d.header)
	d.WriteHeader(http.StatusOK)
	w.WriteHeader(d.status)
	_, _ = w.Write(d.body.Bytes()) // a client that has gone does not mind
}
