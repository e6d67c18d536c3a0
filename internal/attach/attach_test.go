package attach

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFromProgram(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"an attach", `{"attach":{"singleton":"backup","client":"k3","pid":4711,"stop-timeout":"10s","version":"v1"}}`, ""},
		{"an attach that tells an end", `{"attach":{"singleton":"b","client":"k","pid":1,"stop-timeout":"1s","ended":{"run":3,"state":"Li4u"}}}`, ""},
		{"a ping", `{"ping":1}`, ""},
		{"an end", `{"ended":{"run":1,"again":true,"why":"exit status 1"}}`, ""},
		{"a detach", `{"detach":true}`, ""},
		{"nothing", `{}`, "0 messages in one line"},
		{"null", `null`, "0 messages in one line"},
		{"two messages", `{"ping":1,"detach":true}`, "2 messages in one line"},
		{"two values", `{"ping":1}{"ping":2}`, "more than one value in a line"},
		{"an unknown key", `{"pign":1}`, `unknown field "pign"`},
		{"an unknown key inside", `{"ended":{"run":1,"status":0}}`, `unknown field "status"`},
		{"a wrong type", `{"ping":"1"}`, "cannot unmarshal"},
		{"a negative number", `{"ping":-1}`, "cannot unmarshal"},
		{"no JSON", `ping`, "invalid character"},
		{"an empty line", ``, "EOF"},
		{"an end without a run", `{"ended":{"again":true}}`, "has no number"},
		{"too much state", `{"ended":{"run":1,"state":"` + strings.Repeat("Li4u", 171) + `"}}`, "513 bytes of state cannot be handed over, only 512"},
		{"no client", `{"attach":{"singleton":"b","pid":1,"stop-timeout":"1s"}}`, "client has 0 bytes"},
		{"control characters", `{"attach":{"singleton":"b\u001b","client":"k","pid":1,"stop-timeout":"1s"}}`, "cannot be printed"},
		{"no pid", `{"attach":{"singleton":"b","client":"k","stop-timeout":"1s"}}`, "pid is 0"},
		{"no stop-timeout", `{"attach":{"singleton":"b","client":"k","pid":1}}`, "stop-timeout is 0s"},
		{"a stop-timeout for ever", `{"attach":{"singleton":"b","client":"k","pid":1,"stop-timeout":"61m"}}`, "at most 1h0m0s"},
		{"an endpoint too long", `{"attach":{"singleton":"b","client":"k","pid":1,"stop-timeout":"1s","endpoint":"` + strings.Repeat("e", 257) + `"}}`, "endpoint has 257 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) { decodes[FromProgram](t, tc.line, tc.want) })
	}
}

// decodes reads a line, or fails with an error that has a text.
func decodes[M message](t *testing.T, line, problem string) {
	_, err := decode[M]([]byte(line))
	if problem == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, ErrMessage)
	require.ErrorContains(t, err, problem)
}

func TestFromAgent(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"attached", `{"attached":{"system":"s","member":"n1","incarnation":"n1#k","patience":"15s"}}`, ""},
		{"a start", `{"start":{"run":1,"token":"7","valid-for":"20s","notice":"8s"}}`, ""},
		{"a token as a number", `{"start":{"run":1,"token":7,"valid-for":"20s","notice":"8s"}}`, "unquoted value into uint64"},
		{"a start without a token", `{"start":{"run":1,"token":"0","valid-for":"20s","notice":"8s"}}`, "without a run or a token"},
		{"valid for too long", `{"pong":{"n":1,"run":1,"valid-for":"61s"}}`, "valid-for is 1m1s"},
		{"valid for less than nothing", `{"pong":{"n":1,"run":1,"valid-for":"-1s"}}`, "valid-for is -1s"},
		{"a pong without a run", `{"pong":{"n":1}}`, ""},
		{"a bye", `{"bye":{"why":"this member was downed","exit":70}}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) { decodes[FromAgent](t, tc.line, tc.want) })
	}
}

func TestReader(t *testing.T) {
	in := NewReader[FromProgram](strings.NewReader("{\"ping\":1}\n{\"detach\":true}\n"))
	m, err := in.Read()
	require.NoError(t, err)
	require.EqualValues(t, 1, m.Ping)
	m, err = in.Read()
	require.NoError(t, err)
	require.True(t, m.Detach)
	_, err = in.Read()
	require.ErrorIs(t, err, io.EOF)

	in = NewReader[FromProgram](strings.NewReader(strings.Repeat(" ", MaxLine+1)))
	_, err = in.Read()
	require.ErrorIs(t, err, ErrMessage)

	broken := errors.New("broken")
	_, err = NewReader[FromAgent](io.MultiReader(strings.NewReader(`{"po`), failing{broken})).Read()
	require.ErrorIs(t, err, broken, "half a line is none")
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// Whatever an error says, it fits into a message and comes back as it was sent.
func TestText(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("ä", 5000), strings.Repeat("\xff", 5000), "\x00<&>",
		strings.Repeat("x", 1022) + "ä"} {
		m := FromAgent{Bye: &Bye{Why: Text(s)}}
		line := Append(nil, m)
		require.LessOrEqual(t, len(line), MaxLine)
		back, err := decode[FromAgent](line)
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
}

// What is read is written so that it is read again as the same, or refused.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"attach":{"singleton":"backup","client":"k3","pid":4711,"stop-timeout":"10s","ended":{"run":1,"state":"Li4u"}}}`))
	f.Add([]byte(`{"ended":{"run":1,"again":true,"why":"x","state":"Li4u"}}`))
	f.Add([]byte(`{"start":{"run":1,"token":"7","state":"Li4u","from":"n2","valid-for":"25s","notice":"8s"}}`))
	f.Add([]byte(`{"pong":{"n":2,"run":1,"valid-for":"25s"}}`))
	f.Add([]byte(`{"where":{"member":"n1","token":"9"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		again[FromProgram](t, line)
		again[FromAgent](t, line)
	})
}

func again[M message](t *testing.T, line []byte) {
	m, err := decode[M](line)
	if err != nil {
		require.ErrorIs(t, err, ErrMessage)
		return
	}
	written := Append(nil, m)
	back, err := decode[M](written)
	require.NoError(t, err)
	require.Equal(t, string(written), string(Append(nil, back)))
}

func TestDuration(t *testing.T) {
	var d Duration
	require.NoError(t, d.UnmarshalText([]byte("1m30s")))
	require.Equal(t, 90*time.Second, time.Duration(d))
	require.Error(t, d.UnmarshalText([]byte("soon")))
}
