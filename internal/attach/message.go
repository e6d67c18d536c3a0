package attach

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/serf-sbr/serf-sbr/singleton"
)

const (
	// Path is where an agent takes attachments.
	Path = "/run"
	// ContentType is the content type of request and answer.
	ContentType = "application/x-ndjson"
	// PingEvery is how often the program's side pings.
	PingEvery = time.Second
	// Silence is how long the other side may send nothing before it counts as gone; pauses of this side do
	// not count.
	Silence = 10 * time.Second
	// MaxValidFor bounds what an agent promises at once, so that no program outlives a paused agent by much.
	MaxValidFor = time.Minute
	// MaxStopTimeout bounds Attach.StopTimeout.
	MaxStopTimeout = time.Hour
	// maxText bounds texts for people, in bytes.
	maxText = 1024
)

// ErrMessage is wrapped by every error about a message itself.
var ErrMessage = errors.New("attach: not a valid message")

// Refusal is the agent's answer to a program that it does not attach, as an HTTP status and a line.
type Refusal struct {
	Status int
	Text   string
	Again  bool // the program may try again soon
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the agent refuses the program (%d): %s", r.Status, r.Text)
}

// forGood reports whether retrying does not help.
func (r *Refusal) forGood() bool {
	return !r.Again && r.Status != http.StatusConflict && r.Status < http.StatusInternalServerError
}

// FromProgram is a message of the program's side. Exactly one field is set.
type FromProgram struct {
	Attach *Attach `json:"attach,omitempty"`
	// Ping counts from 1.
	Ping  uint64 `json:"ping,omitempty"`
	Ended *Ended `json:"ended,omitempty"`
	// Detach: the program ends as soon as another member takes over, and is not started here again.
	Detach bool `json:"detach,omitempty"`
}

// Attach is the first message.
type Attach struct {
	// Singleton is the name of the singleton.
	Singleton string `json:"singleton"`
	// Endpoint is where callers reach the program; may be empty.
	Endpoint string `json:"endpoint,omitempty"`
	// Client is the same for all attachments of one process, and unique to it. A process that attaches again
	// says thereby that nothing of its program is left.
	Client string `json:"client"`
	// PID is the number of the process, for people.
	PID int `json:"pid"`
	// StopTimeout is how long the program may take to end.
	StopTimeout Duration `json:"stop-timeout"`
	Version     string   `json:"version,omitempty"`
	// Ended is the run whose end could not be reported on the last connection.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended says that nothing is left of a run.
type Ended struct {
	Run uint64 `json:"run"`
	// Again: the program may be started again here.
	Again bool `json:"again,omitempty"`
	// Why is how the run ended, if it was not stopped.
	Why string `json:"why,omitempty"`
	// State is for the next run, at most singleton.MaxState bytes.
	State []byte `json:"state,omitempty"`
}

// FromAgent is a message of the agent's side. Exactly one field is set.
type FromAgent struct {
	Attached *Attached `json:"attached,omitempty"`
	Start    *Start    `json:"start,omitempty"`
	Stop     *Stop     `json:"stop,omitempty"`
	Pong     *Pong     `json:"pong,omitempty"`
	Where    *Where    `json:"where,omitempty"`
	Bye      *Bye      `json:"bye,omitempty"`
}

// Attached is the answer to Attach.
type Attached struct {
	System      string `json:"system"`
	Member      string `json:"member"`
	Incarnation string `json:"incarnation"`
	// Patience is how long the agent looks for a successor after Detach.
	Patience Duration `json:"patience"`
}

// Start starts the program. The program must have ended by ValidFor after the sending of the newest ping that
// was answered before, unless a Pong extends that.
type Start struct {
	// Run numbers the runs of one attachment, from 1.
	Run   uint64 `json:"run"`
	Token uint64 `json:"token,string"`
	// State is the state that the last run has left, From the member that handed it over; both may be empty.
	State    []byte   `json:"state,omitempty"`
	From     string   `json:"from,omitempty"`
	ValidFor Duration `json:"valid-for"`
	// Notice is how long before its time is over the program should be told to end.
	Notice Duration `json:"notice"`
}

// Stop asks the run to end gracefully, within StopTimeout and the time that it still has.
type Stop struct {
	Run uint64 `json:"run"`
	// Cause is that of package handover.
	Cause string `json:"cause"`
	Why   string `json:"why"`
	// Now: at once. Another run may have begun already.
	Now bool `json:"now,omitempty"`
}

// Pong answers a ping.
type Pong struct {
	N uint64 `json:"n"`
	// Run is the run that goes on, zero for none. It must have ended by ValidFor after the ping was sent.
	Run      uint64   `json:"run,omitempty"`
	ValidFor Duration `json:"valid-for,omitzero"`
}

// Where says where the singleton runs, as far as is known; an empty Member: nowhere.
type Where struct {
	Member string `json:"member"`
	Token  uint64 `json:"token,string"`
}

// Bye is the last message.
type Bye struct {
	Why string `json:"why"`
	// Exit is the exit status of the agent, if it ends.
	Exit int `json:"exit,omitempty"`
}

// Duration is written as Go writes it.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Text cuts a text for people to what a message may hold.
func Text(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-len("…")], "") + "…"
}

// check collects what is wrong with a message.
type check struct{ err error }

func (c *check) that(ok bool, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%w: %w", ErrMessage, fmt.Errorf(format, args...))
	}
}

func (c *check) word(what, s string) {
	c.that(s != "" && len(s) <= 128, "%s has %d bytes: 1 to 128 are allowed", what, len(s))
	for _, r := range s {
		c.that(unicode.IsPrint(r), "%s is %q: it has a character that cannot be printed", what, s)
	}
}

func (c *check) text(what, s string) {
	c.that(len(s) <= maxText, "%s has %d bytes, more than %d", what, len(s), maxText)
}

func (c *check) one(n int) { c.that(n == 1, "%d messages in one line: exactly one is allowed", n) }

// validate returns the first problem; it wraps ErrMessage.
func (m FromProgram) validate() error {
	var c check
	c.one(count(m.Attach != nil, m.Ping != 0, m.Ended != nil, m.Detach))
	if a := m.Attach; a != nil {
		c.word("singleton", a.Singleton)
		c.word("client", a.Client)
		c.that(len(a.Endpoint) <= singleton.MaxEndpoint, "endpoint has %d bytes, more than %d", len(a.Endpoint),
			singleton.MaxEndpoint)
		c.that(a.PID > 0, "pid is %d", a.PID)
		c.that(a.StopTimeout > 0 && time.Duration(a.StopTimeout) <= MaxStopTimeout,
			"stop-timeout is %v: more than 0s and at most %v are allowed",
			time.Duration(a.StopTimeout), MaxStopTimeout)
		c.text("version", a.Version)
		c.ended(a.Ended)
	}
	c.ended(m.Ended)
	return c.err
}

func (c *check) ended(e *Ended) {
	if e == nil {
		return
	}
	c.that(e.Run > 0, "a run that has ended has no number")
	c.that(len(e.State) <= singleton.MaxState, "%d bytes of state cannot be handed over, only %d", len(e.State),
		singleton.MaxState)
	c.text("why", e.Why)
}

// validate returns the first problem that could let a program run when it must not; it wraps ErrMessage.
// Other fields are not checked.
func (m FromAgent) validate() error {
	var c check
	c.one(count(m.Attached != nil, m.Start != nil, m.Stop != nil, m.Pong != nil, m.Where != nil, m.Bye != nil))
	valid := func(d Duration) {
		c.that(d >= 0 && time.Duration(d) <= MaxValidFor, "valid-for is %v: 0s to %v are allowed", time.Duration(d),
			MaxValidFor)
	}
	if s := m.Start; s != nil {
		c.that(s.Run > 0 && s.Token > 0, "a start without a run or a token")
		valid(s.ValidFor)
	}
	if m.Pong != nil {
		valid(m.Pong.ValidFor)
	}
	return c.err
}

func count(set ...bool) (n int) {
	for _, s := range set {
		if s {
			n++
		}
	}
	return n
}
