package fence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Max is the largest token: it fits a signed number of 64 bits, BIGINT in SQL.
const Max uint64 = math.MaxInt64

// Errors that others wrap.
var (
	// ErrToken is wrapped when something is no token: zero, more than Max, or a text that is not its one
	// decimal form.
	ErrToken = errors.New("fence: not a token")
	// ErrNoToken is wrapped when there is no token at all: the request has none, or its sender holds nothing
	// any more.
	ErrNoToken = errors.New("fence: no token")
	// ErrStale is wrapped by each StaleError.
	ErrStale = errors.New("fence: stale token")
)

// StaleError refuses a token because a larger one was accepted before: its owner has been replaced, and must
// stop. It wraps ErrStale.
type StaleError struct {
	// Token is the refused token, Newest the largest one accepted so far.
	Token, Newest uint64
}

// Error names both tokens.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%v: %d is older than %d, which was seen already: its owner has been replaced and must stop", ErrStale, e.Token, e.Newest)
}

// Unwrap returns ErrStale.
func (e *StaleError) Unwrap() error { return ErrStale }

// valid returns an error that wraps ErrToken if token is zero or more than Max.
func valid(token uint64) error {
	switch {
	case token == 0:
		return fmt.Errorf("%w: 0 stands for a lease that is not held", ErrToken)
	case token > Max:
		return fmt.Errorf("%w: %d is more than %d", ErrToken, token, Max)
	default:
		return nil
	}
}

// Format returns the text of a token: a decimal number. Parse reads it.
func Format(token uint64) string { return strconv.FormatUint(token, 10) }

// Parse reads what Format wrote and nothing else: no sign, space, leading zero or other base. The error wraps
// ErrToken.
func Parse(text string) (uint64, error) {
	token, err := strconv.ParseUint(text, 10, 63)
	if err != nil || text[0] == '0' {
		return 0, fmt.Errorf("%w: %.32q: want a decimal number from 1 to %d", ErrToken, text, Max)
	}
	return token, nil
}

type contextKey struct{}

// WithToken returns a context that carries the token of a run, for all that is done on its behalf. Transport
// sends it.
func WithToken(ctx context.Context, token uint64) context.Context {
	return context.WithValue(ctx, contextKey{}, token)
}

// FromContext returns the token that ctx carries, and whether it carries one.
func FromContext(ctx context.Context) (uint64, bool) {
	token, ok := ctx.Value(contextKey{}).(uint64)
	return token, ok
}
