package file

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkRead(b *testing.B) {
	s := newStore(b, newPath(b))
	mustWrite(b, s, record("a", 1), "")
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.Read(b.Context())
		require.NoError(b, err)
	}
}

// Two fsyncs: it measures the disk under the temporary directory.
func BenchmarkWrite(b *testing.B) {
	s := newStore(b, newPath(b))
	present := mustWrite(b, s, record("a", 1), "").Version
	b.ReportAllocs()
	for b.Loop() {
		var err error
		present, err = s.Write(b.Context(), record("a", 2), present)
		require.NoError(b, err)
	}
}
