package attach

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An agent that takes long to answer the attachment starts a run at once: the run has the time that it was
// promised, not what is left of it since the attachment was sent.
func TestLink_TheFirstRunHasItsTime(t *testing.T) {
	const slow, promise = 1300 * time.Millisecond, 3500 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		agent := answers(func(r *http.Request) (*http.Response, error) {
			time.Sleep(slow)
			answer, to := io.Pipe()
			go func() {
				say := func(m FromAgent) { _, _ = to.Write(Append(nil, m)) } // the reader may have gone
				say(FromAgent{Attached: &Attached{System: "s", Member: "n1", Incarnation: "n1#k"}})
				say(FromAgent{Start: &Start{Run: 1, Token: 7, ValidFor: Duration(promise)}})
				for lines := NewReader[FromProgram](r.Body); ; {
					m, err := lines.Read()
					if err != nil {
						return
					}
					if m.Ping != 0 {
						say(FromAgent{Pong: &Pong{N: m.Ping, Run: 1, ValidFor: Duration(promise)}})
					}
				}
			}()
			return &http.Response{StatusCode: http.StatusOK, Body: answer}, nil
		})
		to := &AgentOptions{URL: "http://agent", HTTP: &http.Client{Transport: agent}}
		l, err := dial(t.Context(), to, slog.New(slog.DiscardHandler),
			Attach{Singleton: "backup", Client: "k", PID: 1, StopTimeout: Duration(time.Second)})
		require.NoError(t, err)
		defer l.work.Wait()
		defer l.fail(io.EOF)
		first := <-l.starts
		defer first.over()
		synctest.Wait()
		require.Equal(t, promise, time.Until(first.Valid()))
	})
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// What a process that was killed has left is removed by the next one that holds the lock, and nothing else.
func TestTurn_RemovesWhatTheKilledHaveLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun := func() *turn { return newTurn(&Start{}, time.Now()) }
	killed, other, now := begun(), begun(), begun()
	require.NoError(t, killed.prepare(filepath.Join(dir, "a.lock"), "a", &Attached{}))
	require.NoError(t, other.prepare(filepath.Join(dir, "b.lock"), "b", &Attached{}))
	require.NoError(t, now.prepare(filepath.Join(dir, "a.lock"), "a", &Attached{}))
	require.NoDirExists(t, killed.dir)
	require.DirExists(t, other.dir)
	require.DirExists(t, now.dir)
	other.over()
	now.over()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
