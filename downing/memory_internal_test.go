package downing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rule 21: the loop asks the memory, so a disk that stands still under a write must not hold up a reader.
func TestMemory_ReadersDoNotWaitForTheDisk(t *testing.T) {
	m := NewMemory(t.TempDir(), "payments")
	require.NoError(t, m.Open())
	t.Cleanup(func() { _ = m.Close() })
	require.NoError(t, m.update(func(r *remembered) {
		read := make(chan remembered, 1)
		go func() { read <- m.load() }()
		select {
		case last := <-read:
			require.Empty(t, last.Incarnation, "what is not written is not remembered")
		case <-time.After(10 * time.Second):
			t.Error("the reader waits for the writer")
		}
		r.Incarnation = "n1#x"
	}))
	require.Equal(t, "n1#x", m.load().Incarnation)
}
