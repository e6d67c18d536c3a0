package hook

import (
	"encoding/json"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"
)

// event is what a command is run for. Its text is SBR_EVENT, and with "on-" before it the key of the command.
type event string

const (
	suspend event = "suspend"
	resume  event = "resume"
	down    event = "down"
)

// Facts are what a command is told. Every field may be empty. Texts may come from other members: in the environment control characters
// become blanks, and what is longer than 8 KiB is cut; in the JSON object they are whole.
type Facts struct {
	// System names the cluster, Member this member, Incarnation this start of it.
	System      string `json:"system"`
	Member      string `json:"member"`
	Incarnation string `json:"incarnation"`
	// Incident is the id of the partition that it belongs to, as in the log and in the trace.
	Incident string `json:"incident"`
	// State is that of downing.Status.
	State string `json:"state"`
	// Reason is one sentence.
	Reason string `json:"reason"`
	// At is when it happened. Zero: now.
	At time.Time `json:"at"`
	// Token is that of the newest verdict. Zero: there is none.
	Token uint64 `json:"token"`
	// Unreachable are names; Survivors and Down are those of the newest verdict. Nil is an empty list.
	Unreachable []string `json:"unreachable"`
	Survivors   []string `json:"survivors"`
	Down        []string `json:"down"`
}

// log adds to each line whose it is.
func (f *Facts) log(to *slog.Logger) *slog.Logger {
	return to.With("member", f.Member, "incarnation", f.Incarnation, "incident", f.Incident)
}

func (f Facts) complete() Facts {
	if f.At.IsZero() {
		f.At = time.Now()
	}
	f.At = f.At.UTC()
	for _, list := range []*[]string{&f.Unreachable, &f.Survivors, &f.Down} {
		if *list == nil {
			*list = []string{}
		}
	}
	return f
}

// input is the JSON object, on one line.
func (f Facts) input(e event) ([]byte, error) {
	data, err := json.Marshal(struct {
		Event event `json:"event"`
		Facts
	}{e, f})
	return append(data, '\n'), err
}

// environment is that of this process, with the facts.
func (f Facts) environment(e event) []string {
	env := os.Environ()
	for _, v := range [][2]string{
		{"EVENT", string(e)},
		{"SYSTEM", f.System},
		{"MEMBER", f.Member},
		{"INCARNATION", f.Incarnation},
		{"INCIDENT", f.Incident},
		{"STATE", f.State},
		{"REASON", f.Reason},
		{"AT", f.At.Format(time.RFC3339Nano)},
		{"TOKEN", strconv.FormatUint(f.Token, 10)},
	} {
		env = append(env, "SBR_"+v[0]+"="+passable(v[1]))
	}
	return env
}

// maxValue bounds one variable: the kernel refuses to start a command with one of 128 KiB.
const maxValue = 8 << 10

// passable makes a text fit for the environment. Some of it came from other members: a zero byte or too long a text would keep the
// command from starting, a line break would look like a variable of its own.
func passable(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
