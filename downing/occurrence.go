package downing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Occurrence is something that happened to a member. Metrics, log, trace, page and Config.Observe all get it
// from engine.occur, so that they say the same.
type Occurrence struct {
	// At is the wall clock time.
	At time.Time `json:"at"`
	// Member is the name of the member it happened to, Incarnation this start of it.
	Member      string `json:"member"`
	Incarnation string `json:"-"`
	// Incident is the id of the incident that it belongs to, 32 hexadecimal digits; empty when there is
	// none. An incident is one partition as this member lives through it, from the first unreachable
	// member until all is well.
	Incident string `json:"incident,omitempty"`
	// Trace is the trace id of the incident's verdict, the same at all members; empty before the verdict.
	// Without a verdict the incident is the trace.
	Trace string `json:"-"`
	// Kind is one of the Occurred constants, or an sbr.Topic.
	Kind string `json:"kind"`
	// Text says it in words. It is the message of the log line.
	Text string `json:"text"`
	// Subject is the name of the other member, where there is one, and SubjectIncarnation which start of it.
	Subject            string `json:"subject,omitempty"`
	SubjectIncarnation string `json:"-"`
	// Reason is why, in one sentence; empty where that is not known, or no question.
	Reason string `json:"-"`
	// Verdict is set for OccurredVerdict.
	Verdict *sbr.Verdict `json:"verdict,omitempty"`
	// Details are further facts, under the keys that they have in the log.
	Details []slog.Attr `json:"-"`

	cause    string        // of a suspension, see the causes of an episode
	decision *sbr.Decision // of a decision
	labels   []string      // of what counts it
	known    bool          // the log has said it
}

// The kinds of occurrence. Those of sbr.Topic occur as well.
const (
	OccurredWaiting      = "waiting" // at the start, see waitingLease and waitingNewcomer
	OccurredUnreachable  = "unreachable"
	OccurredReachable    = "reachable"
	OccurredSuspended    = "suspended"
	OccurredDeadline     = "deadline" // when this member decides, unless something changes
	OccurredResumed      = "resumed"
	OccurredAsking       = "asking-for-the-lease"
	OccurredGranted      = "lease-granted"
	OccurredHeld         = "lease-held"
	OccurredUnknown      = "lease-unknown"
	OccurredReleased     = "lease-released"
	OccurredLost         = "lease-lost"
	OccurredVerdict      = string(sbr.TopicVerdict)
	OccurredTold         = "told"
	OccurredRemoved      = "removed"
	OccurredRefused      = "refused"
	OccurredGoodbye      = "goodbye"
	OccurredAgentSilent  = "agent-silent" // the Serf agent beside this member does not answer
	OccurredAgentAnswers = "agent-answers"
	OccurredDown         = "down"
)

// manner is how a kind of occurrence is reported. The zero manner is a line for Info and a step of the
// episode.
type manner struct {
	level slog.Level
	// retried: it is tried, or received, again and again. A line that would say the same as the last one of
	// its kind is one for the level Debug.
	retried bool
	// alike: each member of a large cluster makes one, so an episode keeps only some.
	alike bool
	// spanned: a span of the trace records it, or nothing does.
	spanned bool
	counts  *instrument     // counts it, under the occurrence's labels
	shows   func(*readings) // what is the case from then on
}

var manners = map[string]manner{
	OccurredWaiting:     {level: slog.LevelWarn, retried: true},
	OccurredUnreachable: {alike: true},
	OccurredReachable:   {alike: true},
	OccurredSuspended: {level: slog.LevelWarn, counts: countSuspensions, shows: func(now *readings) {
		now.suspended.set(true)
	}},
	OccurredResumed:  {shows: func(now *readings) { now.suspended.set(false) }},
	OccurredDeadline: {spanned: true},
	OccurredAsking:   {retried: true, spanned: true},
	OccurredGranted:  {spanned: true},
	OccurredHeld:     {retried: true, spanned: true},
	OccurredUnknown:  {level: slog.LevelWarn, retried: true},
	OccurredLost:     {level: slog.LevelWarn, counts: countLeaseLosses},
	OccurredTold:     {retried: true, alike: true},
	OccurredRemoved:  {alike: true, counts: countRemovals},
	OccurredRefused:  {level: slog.LevelWarn, retried: true, spanned: true, counts: countRejoins},
	OccurredAgentSilent: {level: slog.LevelError, counts: countAgentFailures, shows: func(now *readings) {
		now.blind.set(true)
	}},
	OccurredAgentAnswers: {shows: func(now *readings) { now.blind.set(false) }},
	OccurredDown: {level: slog.LevelError, spanned: true, counts: countDowns,
		shows: (*readings).end},
	stepOrder:                  {alike: true}, // no occurrence: an order that this member obeys
	string(sbr.TopicArmed):     {spanned: true, shows: func(now *readings) { now.armed = true }},
	string(sbr.TopicDecision):  {level: slog.LevelWarn, counts: countDecisions},
	string(sbr.TopicBackwards): {level: slog.LevelWarn, counts: countBackwards},
	string(sbr.TopicConflict):  {level: slog.LevelError, retried: true, counts: countConflicts},
	string(sbr.TopicIgnored):   {spanned: true, counts: countIgnored},
}

// occur reports what happened to all observers. Loop only.
func (e *engine) occur(o Occurrence) {
	e.note(&o)
	e.emit(o)
}

// note puts an occurrence into the metrics, the incident and the log.
func (e *engine) note(o *Occurrence) { e.write(o, e.count(o)) }

// count puts an occurrence into the metrics and the incident, and reports whether the incident had it before.
func (e *engine) count(o *Occurrence) (repeated bool) {
	o.At, o.Member, o.Incarnation = time.Now(), e.self.Name, string(e.self.ID)
	e.rec.measure(o)
	return e.rec.join(o)
}

// write puts an occurrence into the log, which takes as long as its handler does: for ever if nobody reads
// the pipe that it goes to.
func (e *engine) write(o *Occurrence, repeated bool) {
	level := manners[o.Kind].level
	if repeated || o.known {
		level = slog.LevelDebug
	}
	e.log.LogAttrs(context.Background(), level, "sbr: "+o.Text, o.attrs()...)
}

// emit shows an occurrence beside the lease, and hands it to Config.Observe.
func (e *engine) emit(o Occurrence) {
	e.announceAtStore(&o)
	if e.cfg.Observe != nil {
		e.cfg.Observe(o)
	}
}

// attrs are the keys of the log line, see docs/telemetry.md.
func (o *Occurrence) attrs() []slog.Attr {
	all := append(make([]slog.Attr, 0, 8+len(o.Details)),
		slog.String("topic", o.Kind), slog.String("member", o.Member),
		slog.String("incarnation", o.Incarnation), slog.String("incident", o.Incident))
	if o.Subject != "" {
		all = append(all, slog.String("subject", o.Subject),
			slog.String("subject-incarnation", o.SubjectIncarnation))
	}
	all = append(all, o.Details...)
	if o.Trace != "" {
		all = append(all, slog.String("trace", o.Trace))
	}
	if o.Reason != "" {
		all = append(all, slog.String("reason", o.Reason))
	}
	return all
}

// about is an occurrence of which another member is the subject. text follows its name.
func about(kind string, id sbr.ID, text string) Occurrence {
	name := NameOf(id)
	return Occurrence{Kind: kind, Subject: name, SubjectIncarnation: string(id), Text: name + text}
}

// because is an occurrence whose text is a word and the reason.
func because(kind, word, reason string) Occurrence {
	return Occurrence{Kind: kind, Text: word + ": " + reason, Reason: reason}
}

// with adds facts.
func (o Occurrence) with(details ...slog.Attr) Occurrence {
	o.Details = append(slices.Clip(o.Details), details...)
	return o
}

func ids(key string, list []sbr.ID) slog.Attr { return slog.Any(key, texts(list)) }

// explained is what the resolver has to say.
func (e *engine) explained(x *sbr.Explain) Occurrence {
	o := Occurrence{Kind: string(x.What), Text: x.Text}
	switch x.What {
	case sbr.TopicArmed:
		o = o.with(ids("members", e.present()))
	case sbr.TopicDecision:
		d := x.Decision
		o.decision, o.Reason, o.labels = d, d.Reason, []string{d.Final.String()}
		o = o.with(slog.String("decision", d.Final.String()), ids("downed", d.Down))
	case sbr.TopicVerdict:
		v := e.resolver.Verdict()
		o.Verdict, o.Reason, o.Trace = v.Clone(), v.Reason, traceOf(&v).String()
		o.Text = strings.Replace(o.Text, string(v.DecidedBy), NameOf(v.DecidedBy), 1) // an unknown member
		o = o.with(slog.Uint64("token", v.Token), slog.String("by", string(v.DecidedBy)),
			ids("survivors", v.Survivors), ids("downed", v.Down))
	case sbr.TopicLease:
		o = o.with(slog.String("lease", e.cfg.leaseName()))
		switch ev := e.stepping.(type) {
		case sbr.LeaseReleased:
			o.Kind = OccurredReleased
		case sbr.LeaseAnswer:
			if ev.Outcome == sbr.Unknown {
				o.Kind = OccurredUnknown
			}
		case sbr.LeaseRead:
			if ev.Err != "" {
				o.Kind = OccurredUnknown
			}
		}
	case sbr.TopicIgnored:
		message := wire.KindVerdict
		if _, is := e.stepping.(sbr.Ordered); is {
			message = wire.KindOrder
		}
		o.labels = []string{string(message), ignoredResolver}
	}
	return o
}

// present are the members that this one knows, itself included.
func (e *engine) present() (list []sbr.ID) {
	s := e.resolver.Snapshot()
	for i := range s.Members {
		if m := &s.Members[i]; m.Downable() {
			list = append(list, m.ID)
		}
	}
	return list
}

// asking is an attempt to get the lease.
func (e *engine) asking(v *sbr.Verdict) Occurrence {
	name := e.cfg.leaseName()
	text := fmt.Sprintf("asks for the lease %s: %d would stay, %d would go down", name, len(v.Survivors),
		len(v.Down))
	return Occurrence{Kind: OccurredAsking, Text: text}.
		with(slog.String("lease", name), ids("survivors", v.Survivors), ids("downed", v.Down))
}

// leaseAnswered is what became of an attempt to get the lease. Of one without an answer the resolver speaks.
func (e *engine) leaseAnswered(a *sbr.LeaseAnswer) (o Occurrence, ok bool) {
	name, r := e.cfg.leaseName(), &a.Record
	switch a.Outcome {
	case sbr.Granted:
		o = Occurrence{Kind: OccurredGranted, Text: fmt.Sprintf("holds the lease %s, token %d", name, r.Token)}
	case sbr.Held:
		o = about(OccurredHeld, r.Holder, "")
		o.Text = "did not get the lease: " + strings.TrimPrefix(a.Err, "lease: ")
		o = o.with(slog.String("holder", string(r.Holder)))
	default:
		return o, false
	}
	return o.with(slog.String("lease", name), slog.Uint64("token", r.Token)), true
}

// observeTold reports what another member sent to this one, if it was about this one.
func (e *engine) observeTold(m *wire.Message) {
	if !m.Names(e.self.ID) {
		return
	}
	o := about(OccurredTold, m.From, " sent: ").with(slog.String("message", string(m.Kind)))
	if m.Kind == wire.KindVerdict {
		o.Text += fmt.Sprintf("verdict %d", m.Token)
		o.known = e.resolver.Verdict().Token >= m.Token
		e.occur(o.with(slog.Uint64("token", m.Token)))
		return
	}
	o.Text, o.Reason = o.Text+"order "+m.Decided, m.Reason
	e.occur(o.with(slog.String("decision", m.Decided), ids("downed", m.Down)))
}

// observeDeadline says when this member decides, once for each deadline. Loop only.
func (e *engine) observeDeadline(s *sbr.Snapshot) {
	if !s.HasDeadline || s.State != sbr.StateSuspended || e.isBlind() ||
		!e.isNews("deadline", s.Deadline.String()) {
		return
	}
	in := max(s.Deadline-e.now(), 0).Round(100 * time.Millisecond)
	e.occur(Occurrence{Kind: OccurredDeadline, Text: fmt.Sprintf("decides in %v unless something changes", in)}.
		with(slog.Time("deadline", e.origin.Add(s.Deadline).Round(time.Millisecond)), slog.Duration("in", in)))
}
