package sbr_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// start makes the resolver of a scenario; what it does not say is as in DefaultConfig and DefaultSettings.
func (s *stage) start(a args) error {
	cfg := sbr.DefaultConfig()
	set := strategies.DefaultSettings()
	for key, to := range map[string]*time.Duration{
		"stable": &cfg.StableAfter, "settle": &cfg.SettleAfter, "release-after": &cfg.ReleaseAfter, "suspend-timeout": &cfg.SuspendTimeout,
		"delay": &set.LeaseMajority.AcquireLeaseDelayForMinority,
	} {
		if text := a.of[key]; text == "auto" {
			*to = sbr.Auto
		} else if text != "" {
			var err error
			if *to, err = time.ParseDuration(text); err != nil {
				return err
			}
		}
	}
	if cfg.DownAllWhenUnstable = sbr.Auto; cfg.StableAfter == sbr.Auto { // a second for each member
		cfg.StableFor = func(members int) time.Duration { return time.Duration(members) * time.Second }
	}
	if text := a.of["unstable"]; text != "" {
		cfg.DownAllWhenUnstable, _ = time.ParseDuration(text)
	}
	if a.of["unknown"] == "suspend" {
		cfg.WhenLeaseUnknown = sbr.UnknownSuspend
	}
	if strings.Contains(a.of["indirect"], "off") {
		cfg.DownAllWhenIndirectlyConnected = sbr.Off
	}
	if strings.Contains(a.of["indirect"], "down") {
		set.LeaseMajority.IndirectlyConnected = strategies.DownIndirectlyConnected
	}
	cfg.Watched = a.of["watched"] != "no"
	cfg.MinMembers = int(max(1, a.number("min-members")))
	set.StaticQuorum.QuorumSize = int(a.number("quorum"))
	strategy, err := sbr.Strategy(idle{}), error(nil)
	if key := a.of["strategy"]; key != "idle" {
		strategy, err = strategies.New(key, set)
	}
	if err != nil {
		return err
	}
	self := member(a.of["self"])
	self.Seen = a.number("seen")
	*s = stage{out: s.out, silent: a.of["store"] == "silent"}
	if s.r, err = sbr.New(cfg, strategy, self, 0); err == nil {
		s.state = s.r.State()
	}
	return err
}

// idle never does anything.
type idle struct{}

func (idle) Decide(*sbr.View) sbr.Choice { return sbr.Choice{Reason: "idle"} }

// show prints what the resolver wants done, and the change of its state.
func (s *stage) show(effects []sbr.Effect) {
	var contact uint64
	for _, e := range effects {
		switch e := e.(type) {
		case sbr.AcquireLease:
			s.acq = e
		case sbr.ReadLease:
			if !s.silent && e.Attempt == s.r.ContactAttempt() {
				contact = e.Attempt
				continue
			}
			s.read = e.Attempt
		case sbr.RestoreVerdict:
			s.restore = e.Attempt
		case sbr.ReleaseLease:
			s.free = e.Attempt
		}
		s.print(effectLine(e))
	}
	if now := s.r.State(); now != s.state {
		s.print(fmt.Sprintf("[%s -> %s]", s.state, now))
		s.state = now
	}
	if contact != 0 {
		s.step(sbr.LeaseRead{Attempt: contact, Record: s.r.Snapshot().Record})
	}
}

func (s *stage) print(text string) { s.out = append(s.out, seconds(s.now)+" "+text) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

func effectLine(e sbr.Effect) string {
	switch e := e.(type) {
	case sbr.ReadLease:
		return fmt.Sprintf("read lease #%d", e.Attempt)
	case sbr.AcquireLease:
		line := fmt.Sprintf("acquire lease #%d over token %d: survivors=%v down=%v", e.Attempt, e.Base,
			e.Verdict.Survivors, e.Verdict.Down)
		if len(e.TakeOver) > 0 {
			line += fmt.Sprintf(" take-over=%v", e.TakeOver)
		}
		return line
	case sbr.ReleaseLease:
		return fmt.Sprintf("release lease #%d", e.Attempt)
	case sbr.RestoreVerdict:
		return fmt.Sprintf("restore verdict %d #%d: survivors=%v down=%v", e.Verdict.Token, e.Attempt,
			e.Verdict.Survivors, e.Verdict.Down)
	case sbr.RecordLeave:
		return fmt.Sprintf("record beside verdict %d: left=%v here=%v", e.Token, e.Gone, e.Here)
	case sbr.TellVerdict:
		return fmt.Sprintf("tell %v verdict %d: survivors=%v down=%v", e.Targets, e.Verdict.Token,
			e.Verdict.Survivors, e.Verdict.Down)
	case sbr.TellOrder:
		text := fmt.Sprintf("order %v %s: down=%v", e.Targets, e.Order.Kind, e.Order.Down)
		if len(e.Order.Suspects) > 0 {
			text += fmt.Sprintf(" suspects=%v", e.Order.Suspects)
		}
		return text
	case sbr.AskToRace:
		if e.Contact {
			return fmt.Sprintf("tell %v that this member has contact", e.Targets)
		}
		return fmt.Sprintf("ask %v to race", e.Targets)
	case sbr.AskStanding:
		return "ask everybody for my standing"
	case sbr.AnswerDownRequest:
		return fmt.Sprintf("answer the operator about %s: %s: %s", e.ID, e.Outcome, e.Text)
	case sbr.Remove:
		return fmt.Sprintf("remove %v", e.IDs)
	case sbr.Suspend:
		return "suspend: " + e.Reason
	case sbr.Resume:
		return "resume: " + e.Reason
	case sbr.DownSelf:
		return "DOWN SELF: " + e.Reason
	case sbr.Explain:
		return fmt.Sprintf("(%s) %s", e.What, e.Text)
	default:
		return fmt.Sprintf("%#v", e)
	}
}

func (s *stage) describe() string {
	snap := s.r.Snapshot()
	line := string(snap.State) + ":"
	for i := range snap.Members {
		m := &snap.Members[i]
		line += " " + string(m.ID)
		if m.Status != sbr.Up {
			line += ":" + m.Status.String()
		}
		if m.Unreachable {
			line += "!"
		}
		if m.Unlisted {
			line += "?"
		}
	}
	line += "; leader " + cmp.Or(string(snap.Leader), "none")
	if at, ok := s.r.NextDeadline(); ok {
		line += "; next deadline " + seconds(at)
	}
	if snap.HasDeadline {
		line += "; decides at " + seconds(snap.Deadline)
	}
	return line
}
