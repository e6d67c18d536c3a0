package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Each party has a store of its own, as each process has.
func TestConformance(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		path := newPath(t)
		return leasetest.Harness{
			Open:   func(t testing.TB, _ string) lease.Store { return newStore(t, path) },
			Delete: func(t testing.TB) { require.NoError(t, os.Remove(path)) },
			Interrupt: func(t testing.TB) { // a disk that is unmounted for a moment
				dir := filepath.Dir(path)
				require.NoError(t, os.Rename(dir, dir+".away"))
				_, err := newStore(t, path).Read(t.Context())
				require.ErrorIs(t, err, errNoDirectory)
				require.NoError(t, os.Rename(dir+".away", dir))
			},
		}
	})
}

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
