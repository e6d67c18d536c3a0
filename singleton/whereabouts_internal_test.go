package singleton

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzDecodeNews(f *testing.F) {
	f.Add(whereabouts{what: newsRuns, token: 7, endpoint: "http://10.0.0.1:8080"}.encode())
	f.Add(whereabouts{what: newsWhere}.encode())
	f.Add([]byte{byte(newsRuns), 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := decodeNews(b)
		if err != nil {
			require.ErrorIs(t, err, errNews)
			return
		}
		again, err := decodeNews(w.encode())
		require.NoError(t, err)
		require.Equal(t, w, again)
	})
}

func TestDecodeNews_RefusesWhatNobodyWrites(t *testing.T) {
	for _, b := range [][]byte{nil, {0, 1}, {9, 1}, {byte(newsRuns)}, append([]byte{byte(newsRuns), 1}, strings.Repeat("x", MaxEndpoint+1)...),
		{byte(newsEnded), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		_, err := decodeNews(b)
		require.ErrorIs(t, err, errNews, "%v", b)
	}
}
