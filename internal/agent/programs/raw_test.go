package programs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/attach"
)

// raw is a program's side that says what the test wants.
type raw struct {
	t    *testing.T
	to   *io.PipeWriter
	resp *http.Response
	in   *attach.Reader[attach.FromAgent]
}

// post sends a request to the agent, with the first lines.
func (a *agent) post(change func(r *http.Request), lines ...string) (*raw, error) {
	body, to := io.Pipe()
	r, err := http.NewRequest(http.MethodPost, "http://agent"+attach.Path, body)
	require.NoError(a.t, err)
	r.Header.Set("Content-Type", attach.ContentType)
	if change != nil {
		change(r)
	}
	x := &raw{t: a.t, to: to}
	go x.say(lines...)
	if x.resp, err = a.http.Do(r); err != nil {
		_ = to.Close()
		return nil, err
	}
	x.in = attach.NewReader[attach.FromAgent](x.resp.Body)
	return x, nil
}

func (x *raw) say(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(x.to, line+"\n"); err != nil {
			return
		}
	}
}

// hears returns the next message of a kind.
func (x *raw) hears(is func(m attach.FromAgent) bool) attach.FromAgent {
	x.t.Helper()
	for {
		m, err := x.in.Read()
		require.NoError(x.t, err)
		if is(m) {
			return m
		}
	}
}

func (x *raw) close() {
	_ = x.to.Close()
	_ = x.resp.Body.Close()
}

// refused returns status and text of an answer.
func (x *raw) refused() (int, string) {
	defer x.close()
	line, err := bufio.NewReader(x.resp.Body).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		require.NoError(x.t, err)
	}
	return x.resp.StatusCode, strings.TrimSpace(line)
}

func hello(singleton, client string, pid int) string {
	return fmt.Sprintf(`{"attach":{"singleton":%q,"client":%q,"pid":%d,"stop-timeout":"2s"}}`, singleton, client, pid)
}
