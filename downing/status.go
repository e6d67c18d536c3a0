package downing

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Status is what a member sees, in the form of the agent's GET /status.
type Status struct {
	System      string         `json:"system"`
	Member      string         `json:"member"`
	Incarnation string         `json:"incarnation"`
	State       sbr.State      `json:"state"`
	Members     []MemberStatus `json:"members"`
	// Downed are the members that the newest verdict downed and that are not back: no incarnation of them is
	// among Members.
	Downed []MemberStatus `json:"downed,omitempty"`
	// MembersAsOf is since when the Serf agent beside this member does not answer: what is said of members is
	// of then. nil: it answers.
	MembersAsOf  *time.Time    `json:"members-as-of,omitempty"`
	Unreachable  []string      `json:"unreachable"`
	Leader       string        `json:"leader"`
	Responsible  bool          `json:"responsible"`
	Deadline     *time.Time    `json:"deadline"`
	Lease        LeaseStatus   `json:"lease"`
	Verdict      VerdictStatus `json:"verdict"`
	ConfigDigest string        `json:"config-digest"`
	// StableAfter is how long the view must not change before a decision now, as Go writes durations;
	// StableFor the number of members that it was computed for, if stable-after is auto.
	StableAfter string `json:"stable-after"`
	StableFor   int    `json:"stable-after-for-members,omitempty"`
	// Disagree are the members whose configuration has another digest: two sides that decide by different
	// rules are no resolver.
	Disagree []string `json:"disagree,omitempty"`
	// OtherStore are the members that keep the lease in another store than the cluster: they are suspended,
	// and write nothing.
	OtherStore []string `json:"other-store,omitempty"`
	// Untagged are members that run no resolver: they receive no messages and are not counted.
	Untagged []string `json:"untagged,omitempty"`
	Version  string   `json:"version"`
	// StartingBecause says what a member in StateStarting waits for.
	StartingBecause string `json:"starting-because,omitempty"`
	// Reports say which observer cannot reach which subject, by name, as far as this member knows.
	Reports []ReportStatus `json:"reports"`
	// Newcomer says that this member takes no part yet: it looks for the cluster that it belongs to.
	Newcomer bool `json:"newcomer,omitempty"`
	// Awaiting are members of that cluster, by name, that a newcomer has not found.
	Awaiting []string `json:"awaiting,omitempty"`
	// Incident is the id of the partition that is under way, as it stands in the log and in the trace; empty
	// if there is none.
	Incident string `json:"incident,omitempty"`
	// Trace is the id of its trace, as on the lines of the log; empty before the verdict.
	Trace string `json:"trace,omitempty"`
	// SuspendedSince is when the first sign of the present trouble was seen; nil while there is none.
	SuspendedSince *time.Time `json:"suspended-since,omitempty"`
	// SuspendedBecause says what it was.
	SuspendedBecause string `json:"suspended-because,omitempty"`
	// StateFile says why the state file could not be written: a restart would know what it says, and not who the
	// members are now. Empty: it is written.
	StateFile string `json:"state-file,omitempty"`
	// Singletons are the programs that are attached to the agent (sbr run --singleton), by name. A Provider
	// knows of none.
	Singletons []SingletonStatus `json:"singletons,omitempty"`
}

// SingletonStatus is one program that is attached to an agent, and the singleton that it is run for.
type SingletonStatus struct {
	Name string `json:"name"`
	// Phase is what the agent's member does: see package singleton.
	Phase string `json:"phase"`
	// Token is that of the run here; zero where nothing runs here.
	Token uint64 `json:"token"`
	// Holder is the member that runs it, and HolderToken its token, as far as is known.
	Holder      string `json:"holder"`
	HolderToken uint64 `json:"holder-token"`
	// HolderUnreachable: a verdict decides whether it runs there still.
	HolderUnreachable bool `json:"holder-unreachable,omitempty"`
	// WaitingFor are members that have not agreed yet; Margin is what is left of the removal margin, in
	// words.
	WaitingFor []string `json:"waiting-for"`
	Margin     string   `json:"margin"`
	// LeaseHolder holds the lease that is waited for; empty where there is none, or the holder is not known.
	LeaseHolder string `json:"lease-holder,omitempty"`
	// Attached: the program's side is here. Otherwise its program is being stopped.
	Attached bool `json:"attached"`
	PID      int  `json:"pid"`
	// Last is the newest sentence about it.
	Last string `json:"last"`
}

// ReportStatus is one pair of members of which the first cannot reach the second.
type ReportStatus struct {
	Observer string `json:"observer"`
	Subject  string `json:"subject"`
}

// MemberStatus is one member as this one sees it.
type MemberStatus struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	Status      string `json:"status"`
	Reachable   bool   `json:"reachable"`
	// Address is host:port of the Serf node; Roles are what strategies may count by.
	Address string   `json:"address"`
	Roles   []string `json:"roles,omitempty"`
}

// LeaseStatus is the last known state of the lease; the zero LeaseStatus where the strategy needs none.
type LeaseStatus struct {
	// Kind is the key of the implementation that keeps it, "store" for a Config.Store.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
	// Store tells one store from another: members of one cluster have the same. Empty: it is not known.
	Store string `json:"store,omitempty"`
	// Refused is why the store does not let this member write or read, as far as it has tried: rights or
	// credentials.
	Refused string `json:"refused,omitempty"`
}

// VerdictStatus is the newest verdict; its token is zero when none was ever written.
type VerdictStatus struct {
	Token     uint64   `json:"token"`
	Survivors []string `json:"survivors"`
	Down      []string `json:"down"`
	DecidedBy string   `json:"decided-by"`
	Reason    string   `json:"reason"`
}

func verdictStatus(v sbr.Verdict) VerdictStatus {
	return VerdictStatus{Token: v.Token, Survivors: texts(v.Survivors), Down: texts(v.Down),
		DecidedBy: string(v.DecidedBy), Reason: v.Reason}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return out
}

// show puts up what Status says, unless the watchdog has said already that this member is down.
func (e *engine) show(st Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.halted.Load() {
		e.status = st
		if st.State == sbr.StateDown {
			e.showDown()
		}
	}
}

// firstStatus is what a member knows before its first look at the others.
func (e *engine) firstStatus(s sbr.State) Status {
	return Status{
		System: e.cfg.System, Member: e.self.Name, Incarnation: string(e.self.ID), State: s,
		Members:     []MemberStatus{},
		Unreachable: []string{}, Reports: []ReportStatus{}, Lease: e.leaseStatus(), ConfigDigest: e.digest,
		Version: Version(),
	}
}

// publish renews what Status shows.
func (e *engine) publish() {
	s := e.resolver.Snapshot()
	st := e.firstStatus(s.State)
	st.StableAfter, st.StableFor, st.StateFile = s.StableAfter.String(), s.StableFor, e.unwritten
	st.Leader, st.Responsible, st.Verdict = NameOf(s.Leader), s.Responsible, verdictStatus(s.Verdict)
	for _, r := range e.reports {
		st.Reports = append(st.Reports, ReportStatus{Observer: NameOf(r.Observer), Subject: NameOf(r.Subject)})
	}
	st.Lease.Holder, st.Lease.Token = string(s.Record.Holder), s.Record.Token
	for i := range s.Members {
		m := &s.Members[i]
		st.Members = append(st.Members, MemberStatus{
			Name: m.Name, Incarnation: string(m.ID), Status: m.Status.String(), Reachable: !m.Unreachable,
			Address: m.Addr, Roles: m.Roles,
		})
		if m.Unreachable {
			st.Unreachable = append(st.Unreachable, m.Name)
		}
		if isUntagged(m.ID) {
			st.Untagged = append(st.Untagged, m.Name)
		} else if k := e.members.known[m.ID]; k != nil && k.tags[TagConfig] != e.digest {
			st.Disagree = append(st.Disagree, m.Name)
		}
	}
	st.Downed = notBack(&s)
	if e.isBlind() {
		at := e.blindSince.Round(time.Millisecond)
		st.MembersAsOf = &at
	}
	if s.HasDeadline {
		at := e.origin.Add(s.Deadline).Round(time.Millisecond)
		st.Deadline = &at
	}
	st.Newcomer, st.OtherStore = e.newcomer, e.compareStores(&s)
	for _, id := range e.awaited {
		st.Awaiting = append(st.Awaiting, NameOf(id))
	}
	e.endNewness()
	e.showSuspension(&st)
	if !e.halted.Load() {
		e.show(st)
		e.share(&s, e.sharedState(&s, st.State))
	}
	e.remember(&s)
	e.observeDeadline(&s)
	e.rec.look(&s, len(e.removing) > 0)
}

// sharedState is the state for what runs on top, where shown is the state for people: a member that arms, or
// has not found its cluster yet, is not armed, although it shows as suspended while its application is held
// back.
func (e *engine) sharedState(s *sbr.Snapshot, shown sbr.State) sbr.State {
	if s.State == sbr.StateArming || e.newcomer && s.State != sbr.StateDown {
		return sbr.StateArming
	}
	return shown
}

// notBack are the members that the newest verdict downed and of which no incarnation is listed.
func notBack(s *sbr.Snapshot) (list []MemberStatus) {
	if len(s.Verdict.Down) == 0 {
		return nil
	}
	here := make(map[string]bool, len(s.Members))
	for i := range s.Members {
		here[s.Members[i].Name] = true
	}
	for _, id := range s.Verdict.Down {
		if name := NameOf(id); !here[name] {
			list = append(list, MemberStatus{Name: name, Incarnation: string(id), Status: sbr.Down.String()})
		}
	}
	return list
}

// showDown makes the status say that this member is down. The caller holds e.mu.
func (e *engine) showDown() {
	e.status.State, e.status.Deadline = sbr.StateDown, nil
	e.status.Members = slices.Clone(e.status.Members) // others may be reading the old one
	for i := range e.status.Members {
		if m := &e.status.Members[i]; m.Incarnation == string(e.self.ID) {
			m.Status, m.Reachable = sbr.Down.String(), false
		}
	}
}

// Status implements driver.
func (e *engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.status
	st.Incident, st.Trace = e.rec.ids() // what happened just now may be ahead of the rest
	return st
}

// showSuspension makes the status say so when it is not the resolver that suspends.
func (e *engine) showSuspension(st *Status) {
	if e.held.is(byAdoption) && (st.State == sbr.StateUp || st.State == sbr.StateArming) {
		e.free(byAdoption, "nothing was decided against this member")
	}
	if !e.held.any() {
		return
	}
	if st.State == sbr.StateUp || st.State == sbr.StateArming {
		st.State = sbr.StateSuspended
	}
	since := e.held.since.Round(time.Millisecond)
	st.SuspendedSince, st.SuspendedBecause = &since, e.held.reason
}
