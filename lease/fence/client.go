package fence

import (
	"cmp"
	"fmt"
	"net/http"
)

// Header is the HTTP header that carries a token: in a request the sender's, in an answer 412 the newest one.
const Header = "Fencing-Token"

// Set puts token into the request's header, in place of another one. A zero token, that of a lease which is
// not held, is put there as well: the resource refuses it.
func Set(r *http.Request, token uint64) { r.Header.Set(Header, Format(token)) }

// FromRequest returns the token in the request's header. The error wraps ErrNoToken if there is none, and
// ErrToken if there are several, or it is malformed.
func FromRequest(r *http.Request) (uint64, error) { return fromHeader(r.Header) }

func fromHeader(h http.Header) (uint64, error) {
	switch values := h.Values(Header); len(values) {
	case 0:
		return 0, fmt.Errorf("%w: the header %s is missing", ErrNoToken, Header)
	case 1:
		return Parse(values[0])
	default:
		return 0, fmt.Errorf("%w: the header %s is there %d times", ErrToken, Header, len(values))
	}
}

// FromResponse returns a *StaleError if the answer says that the request's token is stale, as Handler and
// Error do, and nil otherwise. It does not read the body.
func FromResponse(r *http.Response) error {
	if r.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	newest, err := fromHeader(r.Header)
	if err != nil {
		return nil // another precondition
	}
	stale := &StaleError{Newest: newest}
	if r.Request != nil {
		stale.Token, _ = FromRequest(r.Request)
	}
	return stale
}

// Source returns the token of the present run, and whether there is one. It must not block.
type Source func() (token uint64, held bool)

// Of is the Source of an owner that returns its token, and zero when it has none, a lease.Lease for instance.
func Of(holder interface{ Token() uint64 }) Source {
	return func() (uint64, bool) {
		token := holder.Token()
		return token, token != 0
	}
}

// Transport is an http.RoundTripper that sends a token with each request. A request that already carries one,
// in its context (WithToken) or its header (Set), is sent only while that is still the token of the present
// run.
type Transport struct {
	// Source is asked for each request, also after a redirect. Nil: each request must carry its token.
	Source Source
	// Base sends the request. Nil: http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Nothing is sent and the error wraps ErrNoToken when Source says
// that nothing is held, and ErrStale when the request belongs to an earlier run.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	Set(r, token)
	return cmp.Or(t.Base, http.DefaultTransport).RoundTrip(r)
}

func (t *Transport) token(r *http.Request) (uint64, error) {
	own, carried, err := carriedBy(r)
	switch {
	case err != nil:
		return 0, err
	case t.Source == nil && carried:
		return own, nil
	case t.Source == nil:
		return 0, fmt.Errorf("%w: the request carries none", ErrNoToken)
	}
	now, held := t.Source()
	switch {
	case !held:
		return 0, fmt.Errorf("%w: nothing is held at this moment", ErrNoToken)
	case carried && own != now:
		return 0, &StaleError{Token: own, Newest: now}
	default:
		return now, valid(now)
	}
}

// carriedBy returns the token that the request came with.
func carriedBy(r *http.Request) (token uint64, carried bool, err error) {
	if _, there := r.Header[Header]; there {
		token, err = FromRequest(r)
		return token, true, err
	}
	if token, carried = FromContext(r.Context()); carried {
		err = valid(token)
	}
	return token, carried, err
}
