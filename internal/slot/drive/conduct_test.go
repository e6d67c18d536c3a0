package drive_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
)

func TestGo_EveryEndIsTold(t *testing.T) {
	full := errors.New("disk full")
	ends := make(chan error)
	call := func(f func() error) error {
		drive.Go(f, func(err error) { ends <- err })
		return <-ends
	}
	require.NoError(t, call(func() error { return nil }))
	require.ErrorIs(t, call(func() error { return full }), full)
	require.ErrorIs(t, call(func() error { runtime.Goexit(); return nil }), drive.ErrExited)
	err := call(func() error { panic("a bug") })
	require.EqualError(t, err, "panic: a bug")
	require.Contains(t, drive.Attributes(err)[3], "conduct_test.go", "the stack says where")
	require.Len(t, drive.Attributes(full), 2)
}

func TestQuestions_AreAnsweredOnceAndBounded(t *testing.T) {
	var q drive.Questions[string]
	var got []string
	first := q.Keep(func(m string) error { got = append(got, m); return nil })
	require.NoError(t, q.Answer(first, "yes"))
	require.NoError(t, q.Answer(first, "again"))
	old := q.Keep(func(m string) error { got = append(got, m); return nil })
	for range 1024 {
		q.Keep(func(string) error { return errors.New("not this one") })
	}
	require.NoError(t, q.Answer(old, "too late"))
	require.Equal(t, "yes", strings.Join(got, " "))
}
