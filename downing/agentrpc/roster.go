package agentrpc

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"
)

// roster is the member list as it was last read, and the memory of what an agent that restarted has
// forgotten.
type roster struct {
	mu     sync.Mutex
	self   string
	asked  time.Time // when the list was asked for
	why    error     // the agent does not answer; nil while the list is current
	listed []serf.Member
	// lost are members that an earlier life of the agent listed and this one does not, as failed.
	lost map[string]serf.Member
}

// members is the list, in a slice of the caller's own, when it was asked for, and why the agent does not
// answer. The tags in it are shared, and never written.
func (r *roster) members() ([]serf.Member, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.listed)
	for _, name := range slices.Sorted(maps.Keys(r.lost)) {
		list = append(list, r.lost[name])
	}
	return list, r.asked, r.why
}

// read processes a list. The list is the first of a connection, or follows another one of the same
// connection: then the agent is the same, and missing members have been reaped. asked is when the list was
// requested. read reports whether anything changed.
func (r *roster) read(list []serf.Member, asked time.Time, first bool) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.why != nil || !slices.EqualFunc(r.listed, list, sameMember)
	present := make(map[string]bool, len(list))
	for i := range list {
		present[list[i].Name] = true
		delete(r.lost, list[i].Name)
	}
	for _, m := range r.listed {
		if first && !present[m.Name] && m.Name != r.self && m.Status != serf.StatusLeft {
			m.Status = serf.StatusFailed
			r.lost[m.Name] = m
		}
	}
	r.listed, r.asked, r.why = list, asked, nil
	return changed
}

// blind notes that the agent does not answer, and why, and reports whether that is new.
func (r *roster) blind(why error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, r.why = r.why == nil, why
	return changed
}

// forget ends the memory of a lost member, and reports whether there was one.
func (r *roster) forget(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.lost[name]
	delete(r.lost, name)
	return ok
}

func sameMember(a, b serf.Member) bool {
	return a.Name == b.Name && a.Status == b.Status && a.Port == b.Port && a.Addr.Equal(b.Addr) &&
		maps.Equal(a.Tags, b.Tags)
}

func find(list []serf.Member, name string) (serf.Member, bool) {
	i := slices.IndexFunc(list, func(m serf.Member) bool { return m.Name == name })
	if i < 0 {
		return serf.Member{}, false
	}
	return list[i], true
}

// membersOf translates what the client returns.
func membersOf(list []client.Member) []serf.Member {
	out := make([]serf.Member, len(list))
	for i, m := range list {
		out[i] = serf.Member{
			Name: m.Name, Addr: m.Addr, Port: m.Port, Tags: m.Tags, Status: statusOf(m.Status),
		}
	}
	return out
}

// statusOf takes an unknown status for a failure: the member may neither count as present nor be overlooked.
func statusOf(text string) serf.MemberStatus {
	for s := serf.StatusNone; s <= serf.StatusFailed; s++ {
		if s.String() == text {
			return s
		}
	}
	return serf.StatusFailed
}
