package singleton

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// news is what a manager tells locators, and what these ask.
type news byte

const (
	// newsRuns: the sender runs the singleton, under Token, reachable at Endpoint.
	newsRuns news = iota + 1
	// newsEnded: the run under Token is over or must end.
	newsEnded
	// newsWhere: whoever runs the singleton is asked to answer newsRuns.
	newsWhere
)

var errNews = errors.New("singleton: not valid news")

type whereabouts struct {
	what     news
	token    uint64
	endpoint string
}

func (w whereabouts) encode() []byte {
	b := binary.AppendUvarint([]byte{byte(w.what)}, w.token)
	return append(b, w.endpoint...)
}

func decodeNews(b []byte) (w whereabouts, err error) {
	if len(b) == 0 || news(b[0]) < newsRuns || news(b[0]) > newsWhere {
		return w, fmt.Errorf("%w: unknown kind", errNews)
	}
	token, n := binary.Uvarint(b[1:])
	switch {
	case n <= 0:
		return w, fmt.Errorf("%w: cut off", errNews)
	case token > math.MaxInt64:
		return w, fmt.Errorf("%w: the token is too large", errNews)
	case len(b)-1-n > MaxEndpoint:
		return w, fmt.Errorf("%w: the endpoint has %d bytes", errNews, len(b)-1-n)
	}
	return whereabouts{what: news(b[0]), token: token, endpoint: string(b[1+n:])}, nil
}
