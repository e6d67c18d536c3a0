package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// source is what the status page shows.
type source struct{ *agent }

var _ web.Source = source{}

func (s source) Status() downing.Status {
	st := s.provider.Status()
	if st.Members == nil { // nothing has been looked at yet
		st.System, st.Version, st.Members, st.Unreachable, st.Reports = s.file.System, downing.Version(),
			[]downing.MemberStatus{}, []string{}, []downing.ReportStatus{}
		st.ConfigDigest = s.file.Digest()
		if s.store != "" {
			st.Lease.Kind, st.Lease.Name = s.store, s.file.LeaseName()
		}
		if st.State == "" {
			st.State = sbr.StateArming
		}
	}
	if what := s.waitingFor(); what != "" {
		st.State, st.StartingBecause = downing.StateStarting, cmp.Or(st.StartingBecause, what)
	}
	if st.SuspendedBecause != "" && s.waitingFor() == "" {
		if text := s.node.keyProblem(); text != "" {
			st.SuspendedBecause += "; " + text
		}
	}
	if st.Verdict.Survivors == nil {
		st.Verdict.Survivors, st.Verdict.Down = []string{}, []string{}
	}
	st.Singletons = s.programs.Singletons()
	return st
}

func (s source) Journal() []web.Entry { return s.journal.Entries() }

func (s source) Health() web.Health {
	if reason := s.provider.Reason(); reason != "" {
		red := web.Check{Reason: "down: " + reason}
		return web.Health{Live: red, Ready: red}
	}
	h := web.Health{Live: web.Check{OK: true}}
	h.Ready.Reason = s.unready()
	h.Ready.OK = h.Ready.Reason == ""
	return h
}

// unready says why the member must not get work; empty when it may.
func (s source) unready() string {
	if what := s.waitingFor(); what != "" {
		return "starting: " + cmp.Or(s.provider.Status().StartingBecause, what)
	}
	if ok, missing := s.node.joined(); !ok {
		return cmp.Or(s.node.keyProblem(), missing)
	}
	if s.file.DowningProvider == config.ProviderNone {
		return ""
	}
	st := s.Status()
	switch {
	case st.State == sbr.StateUp:
		return ""
	case st.State == sbr.StateArming:
		return s.arming(&st)
	case st.State == "":
		return "starting"
	case st.SuspendedBecause != "":
		return fmt.Sprintf("%s: %s", st.State, st.SuspendedBecause)
	default:
		return string(st.State)
	}
}

// arming lets a member work as soon as the cluster is there: the resolver only waits for a stable view.
func (s source) arming(st *downing.Status) string {
	switch {
	case len(st.Awaiting) > 0:
		return "arming: looking for a survivor of the last verdict: " + strings.Join(st.Awaiting, ", ")
	case st.Newcomer:
		return "arming: looking for the cluster"
	}
	here := 0
	for i := range st.Members {
		if st.Members[i].Reachable {
			here++
		}
	}
	if want := s.file.SplitBrainResolver.MinMembers; here < want {
		return fmt.Sprintf("arming: %d of min-members %d are here", here, want)
	}
	if len(st.Unreachable) > 0 {
		return fmt.Sprintf("arming: %d members are unreachable", len(st.Unreachable))
	}
	return ""
}

func (s source) Config() web.Config {
	members := max(len(s.provider.Status().Members), 1)
	_, r := s.file.Times(members, "")
	c := web.Config{YAML: string(s.file.Redacted().Effective()), Timings: r.Table()}
	for _, w := range r.Warnings {
		c.Warnings = append(c.Warnings, w.String())
	}
	return c
}
