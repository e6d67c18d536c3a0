package sbr_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

var update = flag.Bool("update", false, "rewrite the golden output in testdata")

// TestGolden plays the scenarios in testdata. A file opens with a comment that says what it proves. Then come
// blocks: commands, a line of four dashes, and what the resolver did, which -update rewrites; an empty line
// ends a block.
//
// Virtual time begins at zero; "at=" lets it pass, and every deadline on the way is kept to the nanosecond. A
// member n4 that restarts is written n4/2. An exclamation mark in the output says: unreachable.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(text), "# "), "a scenario opens with what it proves")
			var out strings.Builder
			var world stage
			for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
				commands, _, _ := strings.Cut(block, "\n----")
				out.WriteString(commands + "\n")
				if strings.HasPrefix(commands, "#") {
					out.WriteString("\n")
					continue
				}
				world.out = nil
				for line := range strings.Lines(commands) {
					require.NoError(t, world.play(strings.TrimSpace(line)), "%s: %s", file, line)
				}
				out.WriteString(strings.Join(append([]string{"----"}, world.out...), "\n") + "\n\n")
			}
			got := strings.TrimSpace(out.String()) + "\n"
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

// stage drives one resolver through a scenario.
type stage struct {
	r     *sbr.Resolver
	now   time.Duration
	state sbr.State
	born  int64
	acq   sbr.AcquireLease // the last one
	read  uint64           // the last attempt to read
	free  uint64           // the last attempt to release
	// restore is the last attempt to write a verdict back.
	restore uint64
	// silent leaves the reads of a suspended member unanswered; else they show what is known, and are not
	// printed.
	silent bool
	out    []string
}

var word = regexp.MustCompile(`[^\s=]+=\([^)]*\)|\S+`)

// args are the words of a command: names, and key=value or key=(several values).
type args struct {
	names []string
	of    map[string]string
}

func parse(line string) (cmd string, a args) {
	a.of = make(map[string]string)
	for i, w := range word.FindAllString(line, -1) {
		key, value, pair := strings.Cut(w, "=")
		switch {
		case i == 0:
			cmd = w
		case pair:
			a.of[key] = strings.Trim(value, "()")
		default:
			a.names = append(a.names, w)
		}
	}
	return cmd, a
}

func (a args) ids(key string) (ids []sbr.ID) {
	for name := range strings.FieldsSeq(a.of[key]) {
		ids = append(ids, sbr.ID(name))
	}
	return ids
}

func (a args) id(key string) sbr.ID { return sbr.ID(a.of[key]) }

func (a args) number(key string) uint64 {
	n, _ := strconv.ParseUint(a.of[key], 10, 64)
	return n
}

func (a args) verdict() sbr.Verdict {
	return sbr.Verdict{
		Token: a.number("token"), Survivors: a.ids("survivors"), Down: a.ids("down"),
		Partial: a.of["partial"] != "",
		Left:    a.ids("gone"), Heirs: a.ids("heirs"),
		DecidedBy: cmp.Or(a.id("by"), a.id("holder"), a.id("from")), Reason: cmp.Or(a.of["reason"], "they decided"),
	}
}

// record has a verdict if survivors are named; it stands under the token "verdict", or the record's own.
func (a args) record() sbr.Record {
	rec := sbr.Record{Holder: a.id("holder"), Token: a.number("token"), Behind: a.of["behind"] != ""}
	if a.of["survivors"] != "" {
		v := a.verdict()
		v.Token = cmp.Or(a.number("verdict"), v.Token)
		rec.Verdict = &v
	}
	return rec
}

func (s *stage) play(line string) error {
	cmd, a := parse(line)
	if cmd == "resolver" {
		return s.start(a)
	}
	at := s.now
	if text := cmp.Or(a.of["at"], a.of["until"]); text != "" {
		var err error
		if at, err = time.ParseDuration(text); err != nil || at < s.now {
			return fmt.Errorf("bad time %q after %v: %w", text, s.now, err)
		}
	}
	if err := s.pass(at); err != nil {
		return err
	}
	switch cmd {
	case "tick":
	case "state":
		s.print(s.describe())
	case "answer":
		s.print(fmt.Sprintf("answer to %s: %+v", a.names[0], s.r.Answer(sbr.ID(a.names[0]), a.number("seen"))))
	case "members", "unreachable", "reachable", "gone", "unlisted":
		for _, name := range a.names {
			s.step(s.memberEvent(cmd, name, a))
		}
	default:
		e := s.event(cmd, a)
		if e == nil {
			return fmt.Errorf("unknown command %q", cmd)
		}
		s.step(e)
	}
	return nil
}

func (s *stage) memberEvent(cmd, name string, a args) sbr.Event {
	if cmd == "gone" || cmd == "unlisted" { // it said goodbye, or nobody knows why it is listed no longer
		return sbr.MemberGone{ID: sbr.ID(name), Ended: cmd == "gone"}
	}
	if cmd != "members" {
		return sbr.Reachability{ID: sbr.ID(name), Unreachable: cmd == "unreachable"}
	}
	name, status, _ := strings.Cut(name, ":")
	m := member(name)
	m.Seen, m.Status = a.number("seen"), sbr.Up
	if st, ok := sbr.ParseStatus(status); ok {
		m.Status = st
	}
	s.born++
	m.Born = s.born
	return sbr.MemberSeen{Member: m}
}

func member(id string) sbr.Member {
	name, _, _ := strings.Cut(id, "/")
	return sbr.Member{ID: sbr.ID(id), Name: name, Addr: name + ":7946"}
}

func (s *stage) event(cmd string, a args) sbr.Event {
	attempt := func(last uint64) uint64 { return cmp.Or(a.number("attempt"), last) }
	switch what := strings.Join(append([]string{cmd}, a.names...), " "); what {
	case "lease granted": // as asked, unless said otherwise
		rec := sbr.Record{Holder: s.r.Snapshot().Self, Token: a.number("token"), Verdict: s.acq.Verdict.Clone()}
		rec.Verdict.Token = rec.Token
		return sbr.LeaseAnswer{Attempt: attempt(s.acq.Attempt), Outcome: sbr.Granted, Record: rec}
	case "lease held":
		return sbr.LeaseAnswer{Attempt: attempt(s.acq.Attempt), Outcome: sbr.Held, Record: a.record()}
	case "lease unknown":
		return sbr.LeaseAnswer{Attempt: attempt(s.acq.Attempt), Err: a.of["err"]}
	case "lease read":
		return sbr.LeaseRead{Attempt: attempt(s.read), Record: a.record(), Err: a.of["err"]}
	case "lease restored":
		return sbr.LeaseRead{Attempt: attempt(s.restore), Record: a.record(), Err: a.of["err"]}
	case "lease released", "lease unreleased":
		return sbr.LeaseReleased{Attempt: attempt(s.free), Done: what == "lease released"}
	case "observed":
		return sbr.LeaseObserved{Record: a.record()}
	case "observations":
		var reports []sbr.Report
		for _, pair := range a.ids("reports") {
			observer, subject, _ := strings.Cut(string(pair), ">")
			reports = append(reports, report(sbr.ID(observer), sbr.ID(subject)))
		}
		return sbr.Observations{Reports: reports}
	case "told":
		return sbr.Told{From: a.id("from"), Verdict: a.verdict()}
	case "ordered":
		kind, _ := sbr.ParseKind(a.of["kind"])
		return sbr.Ordered{From: a.id("from"), Order: sbr.Order{Kind: kind, Down: a.ids("down"),
			Reason: "they decided", Suspects: a.ids("suspects")}}
	case "asked":
		return sbr.Asked{From: a.id("from"), Suspects: a.ids("suspects"), Contact: a.of["contact"] == "yes"}
	case "suspected":
		var list []sbr.Member
		for _, id := range a.ids("members") {
			m := member(string(id))
			m.Seen = a.number("seen")
			list = append(list, m)
		}
		return sbr.Suspected{Members: list}
	case "cleared":
		return sbr.Cleared{From: a.id("from"), Token: a.number("token"), Unsure: a.of["unsure"] == "yes"}
	case "operator":
		return sbr.DownRequested{ID: a.id("downs"), Reason: a.of["reason"]}
	case "resumed":
		gap, _ := time.ParseDuration(a.of["gap"])
		return sbr.Resumed{Gap: gap}
	case "failed":
		return sbr.Failed{Reason: a.of["reason"]}
	case "left":
		return sbr.Left{}
	}
	return nil
}

// pass lets time pass up to at, and ticks at every deadline on the way.
func (s *stage) pass(at time.Duration) error {
	for range 10_000 {
		due, ok := s.r.NextDeadline()
		if !ok || due > at {
			s.now = at
			return nil
		}
		s.now = max(s.now, due)
		s.show(s.r.Tick(s.now))
	}
	return fmt.Errorf("the deadline does not move: %v", s.now)
}

func (s *stage) step(e sbr.Event) { s.show(s.r.Step(s.now, e)) }
