package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/inbox"
)

func TestInbox_KeepsTheOrderAndWakesOnce(t *testing.T) {
	b := inbox.New()
	var got []int
	for i := range 3 {
		b.Post(func() { got = append(got, i) })
	}
	require.Equal(t, 3, b.Len())
	<-b.Wake()
	for _, f := range b.Take() {
		f()
	}
	require.Equal(t, []int{0, 1, 2}, got)
	require.Empty(t, b.Take())
	require.Zero(t, b.Len())
	select {
	case <-b.Wake():
		t.Fatal("woken without a reason")
	default:
	}
}

func TestInbox_ClosedDropsEverything(t *testing.T) {
	b := inbox.New()
	b.Post(func() {})
	b.Close()
	b.Post(func() {})
	require.Zero(t, b.Len())
	require.Empty(t, b.Take())
}
