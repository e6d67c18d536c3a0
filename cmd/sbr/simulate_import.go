package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// importLogs writes the scenario file of what the logs of agents tell, and says what of them it is made of.
func importLogs(s streams, paths []string) error {
	in := &incident{members: make(map[string]*logged), unused: make(map[string]int)}
	for _, path := range paths {
		name, data, err := readInput(path, s.in, maxLog)
		if err == nil {
			err = in.read(name, data)
		}
		if err != nil {
			return badInput{err}
		}
	}
	slices.SortStableFunc(in.lines, func(a, b logLine) int { return a.at.Compare(b.at) })
	for _, l := range in.lines {
		if err := in.take(l); err != nil {
			return badInput{fmt.Errorf("%s: %w", l.where, err)}
		}
	}
	text, err := in.file()
	if err != nil {
		return badInput{err}
	}
	if _, err := s.out.Write(text); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s of %s; lines that no step comes of:\n", count(len(in.lines), "line"),
		count(len(paths), "log"))
	for _, what := range slices.Sorted(maps.Keys(in.unused)) {
		fmt.Fprintf(s.err, "  %6d  %s\n", in.unused[what], what)
	}
	return nil
}

// logLine is a line of a log. Its values are as slog writes them as text: lists are [a b].
type logLine struct {
	at    time.Time
	where string
	keys  map[string]string
}

// incident is what happened, as the members saw it.
type incident struct {
	lines    []logLine
	members  map[string]*logged // also members of which only others speak
	strategy string
	told     []told         // what was decided
	downs    []timedStep    // by operators
	unused   map[string]int // lines, by what they are
}

type told struct {
	at   time.Time
	text string
}

// logged is what the logs say of one member.
type logged struct {
	starts []*start          // empty: it has no log
	sees   map[string][]span // when it called others unreachable
	pauses []span
	store  []span // when the lease's store gave it no answer
}

// start is an incarnation of a member, as far as its own log tells.
type start struct {
	id                string
	first, last       time.Time // lines
	left, ended, down time.Time // zero: not
	status            string    // exit status, if it ended
}

// span is a time from a moment to another one; without an end it is open.
type span struct {
	from, to time.Time
	refused  bool // by the store: it answered, and gave no right
}

func (s span) has(at time.Time) bool { return !at.Before(s.from) && (s.to.IsZero() || at.Before(s.to)) }

// meets reports whether two spans have a moment in common.
func (s span) meets(o span) bool { return s.has(o.from) || o.has(s.from) }

// maxLog is the largest log that is read.
const maxLog = 1 << 30

func (in *incident) read(name string, log []byte) error {
	if len(log) > maxLog {
		return fmt.Errorf("%s: is larger than %d bytes", name, maxLog)
	}
	const longest = 1 << 20
	lines, first := bufio.NewScanner(bytes.NewReader(log)), len(in.lines)
	lines.Buffer(nil, longest)
	about := false
	for n := 1; lines.Scan(); n++ {
		l := logLine{where: fmt.Sprintf("%s:%d", name, n), keys: logKeys(lines.Text())}
		if l.keys == nil {
			return fmt.Errorf("%s: expected a line as sbr agent logs it, JSON or text, found %.60q", l.where,
				lines.Text())
		}
		var err error
		if l.at, err = time.Parse(time.RFC3339Nano, l.keys["time"]); err != nil {
			return fmt.Errorf("%s: time: expected one such as 2026-11-25T15:33:14.367Z, found %.40q", l.where,
				l.keys["time"])
		}
		about = about || l.keys["member"] != ""
		in.lines = append(in.lines, l)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", name, len(in.lines)-first+1, err)
	}
	if !about {
		return fmt.Errorf("%s: nothing in it is about a member: give the log of sbr agent, from --log-level info on", name)
	}
	return nil
}

var logKey = regexp.MustCompile(`^[^\s="]+=`)

// logKeys reads a line as slog writes it, JSON or text; nil: it is neither.
func logKeys(line string) map[string]string {
	keys := make(map[string]string)
	if strings.HasPrefix(line, "{") {
		var values map[string]any
		if json.Unmarshal([]byte(line), &values) != nil {
			return nil
		}
		for k, v := range values {
			keys[k] = fmt.Sprint(v)
		}
		return keys
	}
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key := logKey.FindString(rest)
		if key == "" {
			return nil
		}
		value, after, _ := strings.Cut(rest[len(key):], " ")
		if quoted, err := strconv.QuotedPrefix(rest[len(key):]); err == nil {
			value, _ = strconv.Unquote(quoted)
			after = rest[len(key)+len(quoted):]
		}
		keys[strings.TrimSuffix(key, "=")], rest = value, after
	}
	return keys
}

func (in *incident) member(name string) *logged {
	if in.members[name] == nil {
		in.members[name] = &logged{sees: make(map[string][]span)}
	}
	return in.members[name]
}

// list are the names in a list of incarnations.
func (in *incident) list(text string) (names []string) {
	for id := range strings.FieldsSeq(strings.Trim(text, "[]")) {
		names = append(names, downing.NameOf(sbr.ID(id)))
		in.member(names[len(names)-1])
	}
	return names
}

// take takes in one line; they come in the order of time.
func (in *incident) take(l logLine) error {
	topic, name, owner := l.keys["topic"], l.keys["member"], l.keys["owner"]
	switch {
	case topic == "" && owner != "" && l.keys["error"] != "": // the lease speaks
		in.member(downing.NameOf(sbr.ID(owner))).noStore(l.at, l.keys["error"])
		return nil
	case topic == "" && owner != "" && strings.HasSuffix(l.keys["msg"], "watching again"):
		in.member(downing.NameOf(sbr.ID(owner))).storeBack(l.at)
		return nil
	case topic == "" && (name == "" || l.keys["incarnation"] == ""):
		in.unused["without a topic"]++
		return nil
	case name == "" || l.keys["incarnation"] == "":
		return fmt.Errorf("topic %s without member and incarnation", topic)
	}
	m := in.member(name)
	st := m.at(l)
	switch topic {
	case "":
		if l.keys["strategy"] != "" {
			in.strategy = l.keys["strategy"]
		}
		if l.keys["exit-status"] != "" {
			st.ended, st.status = l.at, l.keys["exit-status"]
		}
		if subject := l.keys["subject"]; subject != "" && l.keys["outcome"] == sbr.Granted.String() {
			in.member(subject)
			in.downs = append(in.downs, timedStep{l.at, scenario.Step{Down: &subject, By: &name}})
		}
	case downing.OccurredUnreachable, downing.OccurredReachable:
		subject := l.keys["subject"]
		if subject == "" {
			return fmt.Errorf("topic %s without subject", topic)
		}
		in.member(subject)
		all := m.sees[subject]
		open := len(all) > 0 && all[len(all)-1].to.IsZero()
		if topic == downing.OccurredUnreachable && !open {
			m.sees[subject] = append(all, span{from: l.at})
		} else if topic == downing.OccurredReachable && open {
			all[len(all)-1].to = l.at
		}
	case string(sbr.TopicArmed):
		in.list(l.keys["members"])
		m.storeBack(l.at)
	case string(sbr.TopicPaused):
		return m.paused(l)
	case downing.OccurredUnknown:
		m.noStore(l.at, l.keys["msg"])
	case downing.OccurredGranted, downing.OccurredHeld, downing.OccurredReleased:
		m.storeBack(l.at)
	case downing.OccurredVerdict:
		text := fmt.Sprintf("verdict %s by %s: %s up, %s down", l.keys["token"],
			downing.NameOf(sbr.ID(l.keys["by"])),
			names(in.list(l.keys["survivors"])), names(in.list(l.keys["downed"])))
		if !slices.ContainsFunc(in.told, func(t told) bool { return t.text == text }) {
			in.told = append(in.told, told{l.at, text})
		}
	case downing.OccurredDown:
		st.down = l.at
		m.storeBack(l.at) // what it needed the store for is over
		in.told = append(in.told, told{l.at, name + " went down"})
	case downing.OccurredGoodbye:
		if l.keys["subject"] == "" {
			st.left = l.at
		}
	default:
		in.unused["topic "+topic]++
	}
	return nil
}

var pausedFor = regexp.MustCompile(` for ([0-9.hmsµ]+): `)

func (m *logged) paused(l logLine) error {
	if strings.Contains(l.keys["msg"], "back after the pause") {
		return nil
	}
	if text := pausedFor.FindStringSubmatch(l.keys["msg"]); text != nil {
		if gap, err := time.ParseDuration(text[1]); err == nil {
			m.pauses = append(m.pauses, span{from: l.at.Add(-gap), to: l.at})
			return nil
		}
	}
	return errors.New("topic paused does not say for how long")
}

// at is the incarnation that a line is about.
func (m *logged) at(l logLine) *start {
	id := l.keys["incarnation"]
	i := slices.IndexFunc(m.starts, func(s *start) bool { return s.id == id })
	if i < 0 {
		i, m.starts = len(m.starts), append(m.starts, &start{id: id, first: l.at})
	}
	m.starts[i].last = l.at
	return m.starts[i]
}

func (m *logged) noStore(at time.Time, problem string) {
	refused := strings.Contains(problem, lease.ErrRefused.Error())
	if n := len(m.store); n == 0 || !m.store[n-1].to.IsZero() {
		m.store = append(m.store, span{from: at, refused: refused})
	}
}

func (m *logged) storeBack(at time.Time) {
	if n := len(m.store); n > 0 && m.store[n-1].to.IsZero() {
		m.store[n-1].to = at
	}
}
