package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a ledger.
func open(t *testing.T) (*Server, Client) {
	s, err := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	require.NoError(t, err)
	web := httptest.NewServer(s)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		web.Close()
		_ = s.Close()
	})
	return s, Client{URL: web.URL + "/", HTTP: client}
}

func entry(resource, member string) Entry {
	return Entry{Resource: resource, Member: member, Run: member + "-1", Seq: 1, Kind: Work}
}

func TestServer_OneLineForEachAttempt(t *testing.T) {
	_, client := open(t)
	attempts := []struct {
		token    uint64
		entry    Entry
		accepted bool
	}{
		{3, entry("a", "n1"), true}, {4, entry("a", "n2"), true}, {3, entry("a", "n1"), false},
		{1, entry("b", "n1"), true}, {4, entry("a", "n2"), true},
	}
	for _, a := range attempts {
		err := client.Append(t.Context(), a.token, a.entry)
		if a.accepted {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, &fence.StaleError{Token: 3, Newest: 4}, err)
	}
	lines, err := client.Lines(t.Context())
	require.NoError(t, err)
	require.Len(t, lines, len(attempts))
	for i, l := range lines {
		a := attempts[i]
		require.Equal(t, Line{At: l.At, Token: a.token, Accepted: a.accepted, Entry: a.entry}, l)
	}
	require.True(t, Analyse(lines).Clean())
}

func TestServer_RefusesWhatIsNoEntry(t *testing.T) {
	s, client := open(t)
	good := `{"resource": "a", "member": "n1", "run": "1", "seq": 1, "kind": "work"}`
	for name, c := range map[string]struct {
		token, body string
		status      int
		want        string
	}{
		"no token":       {"", good, 428, "Fencing-Token"},
		"no number":      {"x", good, 400, "not a token"},
		"no JSON":        {"1", "work", 400, "want an entry in JSON"},
		"another field":  {"1", `{"resource": "a", "run": "1", "kind": "work", "at": 5}`, 400, "at"},
		"too long":       {"1", `{"resource": "` + strings.Repeat("x", maxEntry) + `"}`, 400, "too large"},
		"nothing in it":  {"1", `{}`, 400, "the kind is"},
		"another kind":   {"1", strings.Replace(good, "work", "rest", 1), 400, `the kind is "rest"`},
		"no resource":    {"1", strings.Replace(good, `"a"`, `""`, 1), 400, "the resource is empty"},
		"no run":         {"1", strings.Replace(good, `"1"`, `""`, 1), 400, "the run is empty"},
		"what curl does": {"1", good, 204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/append", strings.NewReader(c.body))
			if c.token != "" {
				r.Header.Set(fence.Header, c.token)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code)
			require.Contains(t, w.Body.String(), c.want)
		})
	}
	lines, err := client.Lines(t.Context())
	require.NoError(t, err)
	require.Len(t, lines, 1)
}

func TestOpen_OnlyANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	s, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, s.decide(t.Context(), 1, entry("a", "n1")))
	require.NoError(t, s.Close())
	_, err = Open(path)
	require.ErrorContains(t, err, "is not empty")
	require.ErrorContains(t, err, path)
	_, err = Open("")
	require.Error(t, err)
}

// What could not be written is not confirmed, and nothing follows it: nobody knows where the file ends.
func TestServer_AFileThatFails(t *testing.T) {
	s, client := open(t)
	require.NoError(t, client.Append(t.Context(), 1, entry("a", "n1")))
	require.NoError(t, s.file.Close())
	for range 2 {
		err := client.Append(t.Context(), 1, entry("a", "n1"))
		require.ErrorContains(t, err, "503")
		require.ErrorContains(t, err, "file already closed")
		require.NotErrorIs(t, err, fence.ErrStale)
	}
	_, err := client.Lines(t.Context())
	require.ErrorContains(t, err, "503")
}

// A line is written inside of its fence: while that of one owner is on its way to the file, the next owner
// waits at the fence.
func TestServer_DecisionAndLineAreOneStep(t *testing.T) {
	s, _ := open(t)
	answers := make(chan error)
	s.writing.Lock()
	go func() { answers <- s.decide(context.Background(), 1, entry("a", "n1")) }()
	inside := func() bool { return s.fence("a").Newest() == 1 }
	if !assert.Eventually(t, inside, time.Minute, time.Millisecond) {
		s.writing.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	go func() { answers <- s.decide(ctx, 2, entry("a", "n2")) }()
	select {
	case err := <-answers:
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	case <-time.After(10 * time.Second):
		t.Error("it waits for the file, with the fence open")
		defer func() { <-answers }()
	}
	s.writing.Unlock()
	require.NoError(t, <-answers)
}

// Many writers at once, each with tokens as they come.
func TestServer_ManyAtOnce(t *testing.T) {
	const writers, tries = 6, 60
	_, client := open(t)
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(writer), 1))
			for i := range tries {
				token := uint64(i+random.IntN(9))*writers + uint64(writer) + 1
				_ = client.Append(context.Background(), token, entry("a", fmt.Sprint("n", writer)))
			}
		})
	}
	wg.Wait()
	lines, err := client.Lines(t.Context())
	require.NoError(t, err)
	report := Analyse(lines)
	require.Equal(t, writers*tries, report.Lines)
	require.NotZero(t, report.Refused)
	require.NotZero(t, report.Accepted)
	require.True(t, report.Clean(), "%+v", report.Violations)
}

func TestWriter_StartWorkStop(t *testing.T) {
	_, client := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Stats)
	go func() {
		done <- Writer{Client: client, Entry: entry("a", "n1"), Token: 7, Every: time.Millisecond}.Run(ctx)
	}()
	wait(t, client, func(lines []Line) bool { return len(lines) >= 5 })
	cancel()
	stats := <-done
	lines, err := client.Lines(t.Context())
	require.NoError(t, err)
	require.Equal(t, Stats{Accepted: len(lines)}, stats)
	for i, l := range lines {
		kind := Work
		switch i {
		case 0:
			kind = Start
		case len(lines) - 1:
			kind = Stop
		}
		require.Equal(t, Entry{Resource: "a", Member: "n1", Run: "n1-1", Seq: uint64(i + 1), Kind: kind}, l.Entry)
	}
}

// A writer that is refused, or finds nobody, goes on, and counts.
func TestWriter_GoesOn(t *testing.T) {
	s, client := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Stats)
	go func() {
		done <- Writer{Client: client, Entry: entry("a", "n1"), Token: 7, Every: time.Millisecond}.Run(ctx)
	}()
	wait(t, client, func(lines []Line) bool { return len(lines) >= 3 })
	require.NoError(t, client.Append(t.Context(), 8, entry("a", "n2")))
	wait(t, client, func(lines []Line) bool { return Analyse(lines).Refused >= 3 })
	require.NoError(t, s.Close())
	cancel()
	stats := <-done
	require.GreaterOrEqual(t, stats.Accepted, 3)
	require.GreaterOrEqual(t, stats.Refused, 3)
	require.GreaterOrEqual(t, stats.Failed, 1, "the stop at least")
	require.ErrorContains(t, stats.Last, "503")
}

// A run that may not work any more ends by itself. What it looked for before the pause it writes after it.
func TestWriter_LooksBeforeThePause(t *testing.T) {
	_, client := open(t)
	looks := 0
	stats := Writer{Client: client, Entry: entry("a", "n1"), Token: 7, Every: time.Millisecond,
		Check: func() error {
			if looks++; looks > 3 {
				return errors.New("no")
			}
			return nil
		}}.Run(t.Context())
	require.Equal(t, Stats{Accepted: 5}, stats, "a start, three times work, a stop")
}

// wait asks the ledger until it is as it should be.
func wait(t *testing.T, client Client, ready func([]Line) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		lines, err := client.Lines(t.Context())
		return err == nil && ready(lines)
	}, time.Minute, 5*time.Millisecond)
}

func TestClient_Nobody(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	client := Client{URL: web.URL, HTTP: web.Client()}
	require.ErrorContains(t, client.Append(t.Context(), 1, entry("a", "n1")), "404")
	_, err := client.Lines(t.Context())
	require.ErrorContains(t, err, "404")
	web.Close()
	require.ErrorContains(t, client.Append(t.Context(), 1, entry("a", "n1")), "refused")
	require.Error(t, Client{URL: ":"}.Append(t.Context(), 1, entry("a", "n1")))
}

func TestRead(t *testing.T) {
	one := `{"at":5,"token":1,"accepted":true,"resource":"a","member":"n1","run":"1","seq":1,"kind":"work"}` +
		"\n"
	two := strings.Replace(one, "5", "6", 1)
	for name, c := range map[string]struct {
		text  string
		lines int
		want  string
	}{
		"empty":         {"", 0, ""},
		"two":           {one + two, 2, ""},
		"cut off":       {one + two[:40], 1, "line 2: unexpected EOF"},
		"no newline":    {one + strings.TrimSpace(two), 1, "line 2: unexpected EOF"},
		"no JSON":       {one + "x\n" + two, 1, "line 2: invalid"},
		"no entry":      {"{}\n", 0, "line 1: ledger: the resource is empty"},
		"the same time": {one + one, 1, "line 2: its time is 5ns, and that of the line before 5ns"},
		"backwards":     {two + one, 1, "line 2: its time is"},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := Read(strings.NewReader(c.text))
			require.Len(t, lines, c.lines)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"at":5,"token":1,"accepted":true,"resource":"a","run":"1","seq":1,"kind":"work"}` + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines, err := Read(strings.NewReader(string(text)))
		if err == nil && len(text) > 0 {
			require.Equal(t, strings.Count(string(text), "\n"), len(lines))
		}
		require.NoError(t, Analyse(lines).WriteText(io.Discard))
	})
}
