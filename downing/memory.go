package downing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/serf-sbr/serf-sbr/internal/folder"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// ErrMemoryBusy is wrapped by Memory.Open while another process of the same node and system uses the folder.
var ErrMemoryBusy = errors.New("downing: another process uses the state folder")

// Memory keeps what must outlive the process of a member, in one file of a folder on its host: its
// incarnation, whether that was downed, the other members, and the unreachable members that were not decided
// about yet. Only one process at a time can have it open, so the next process proves by it that its
// predecessor has ended. It is safe for concurrent use.
type Memory struct {
	path string
	lock *flock.Flock

	writing sync.Mutex // held for as long as the disk takes, so no reader waits for it
	last    atomic.Pointer[remembered]
}

// remembered is what the file holds.
type remembered struct {
	// Incarnation is the newest one of this node, Before are those before it, the newest first.
	Incarnation string   `json:"incarnation"`
	Before      []string `json:"before,omitempty"`
	// Over says that the incarnation went down.
	Over bool `json:"over,omitempty"`
	// Members are the others in the last view that counted: that of an incarnation which took part. Verdict
	// is what had left them, zero if there was none.
	Members []place     `json:"members,omitempty"`
	Verdict sbr.Verdict `json:"verdict,omitzero"`
	// Left says that this member left them in peace.
	Left bool `json:"left,omitempty"`
	// Downed are members that were downed, and whose hosts have not come back.
	Downed []place `json:"downed,omitempty"`
}

// place is a member, and where it was when it was seen last.
type place struct {
	ID    sbr.ID   `json:"id"`
	Addr  string   `json:"address,omitempty"`
	Roles []string `json:"roles,omitempty"`
	Born  int64    `json:"born,omitempty"`
	Seen  uint64   `json:"seen,omitempty"`
	// Suspect says that it could not be reached, and nothing was decided about it.
	Suspect bool `json:"suspect,omitempty"`
	// DownedAt is when that was noticed, in Unix seconds.
	DownedAt int64 `json:"downed-at,omitempty"`
}

func placeOf(m *sbr.Member) place {
	return place{ID: m.ID, Addr: m.Addr, Roles: m.Roles, Born: m.Born, Seen: m.Seen,
		Suspect: m.Unreachable && m.Status <= sbr.Up}
}

func (p *place) member() sbr.Member {
	return sbr.Member{ID: p.ID, Name: NameOf(p.ID), Addr: p.Addr, Roles: p.Roles, Born: p.Born, Seen: p.Seen}
}

// NewMemory returns the memory of a system in a folder. It has to be opened before a Provider may use it.
func NewMemory(dir, system string) *Memory {
	base := filepath.Join(dir, fileName(system))
	return &Memory{path: base + ".json", lock: flock.New(base + ".lock")}
}

// Open reads what is remembered, and keeps other processes out until Close. It makes the folder if there is
// none, and may be tried again. Errors: ErrMemoryBusy, those of the file system, and a file that is no
// memory.
func (m *Memory) Open() error {
	dir := filepath.Dir(m.path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("downing: the state folder: %w", err)
	}
	switch locked, err := m.lock.TryLock(); {
	case err != nil:
		return fmt.Errorf("downing: the state folder %s: %w", dir, err)
	case !locked:
		return fmt.Errorf("%w: %s", ErrMemoryBusy, dir)
	}
	var last remembered
	data, err := os.ReadFile(m.path)
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = m.lock.Close()
		return fmt.Errorf("downing: the state file %s: %w", m.path, err)
	}
	m.last.Store(&last)
	return nil
}

// fileName makes a name fit for a file.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r == 0 {
			return '_'
		}
		return r
	}, name)
}

// Close lets another process use the folder. Nothing may use the Memory afterwards.
func (m *Memory) Close() error { return m.lock.Close() }

// load is what is remembered. It waits for nothing: a write that the disk holds up is not seen yet.
func (m *Memory) load() remembered {
	if m == nil || m.last.Load() == nil {
		return remembered{}
	}
	return *m.last.Load()
}

// update changes what is remembered. When it returns without an error that outlives a power loss. Without a
// Memory nothing is to be remembered.
func (m *Memory) update(change func(*remembered)) error {
	if m == nil {
		return nil
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if !m.lock.Locked() {
		return fmt.Errorf("%s: %w", m.path, fs.ErrClosed)
	}
	last := m.load()
	r := last
	change(&r)
	if reflect.DeepEqual(last, r) {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	disk := folder.Real()
	if err := disk.Replace(m.path, m.path+".new", append(data, '\n'), 0o640); err != nil {
		return err
	}
	m.last.Store(&r)
	return nil
}

// begin remembers that this incarnation has begun, before other members can see it, and returns the tag that
// names its predecessors.
func (e *engine) begin() (was string, err error) {
	err = e.cfg.Memory.update(func(r *remembered) {
		if r.Incarnation == string(e.self.ID) {
			return
		}
		if r.Incarnation != "" {
			r.Before = append([]string{r.Incarnation}, r.Before...)
			r.Before = r.Before[:min(len(r.Before), maxPredecessors)]
		}
		r.Incarnation, r.Over = string(e.self.ID), false
	})
	if err != nil {
		return "", fmt.Errorf("downing: the state file: %w", err)
	}
	var uids []string
	for _, id := range e.cfg.Memory.load().Before {
		uids = append(uids, uidOf(sbr.ID(id)))
	}
	return strings.Join(uids, ","), nil
}

// What a member remembers of the others: the members when it took part last, so that its next incarnation
// looks for them, and the addresses of the downed members.

// recall hands the resolver the members that an earlier process of this node could not reach. Loop only.
func (e *engine) recall() {
	var suspects []place
	for _, p := range e.cfg.Memory.load().Members {
		if p.Suspect {
			suspects = append(suspects, p)
		}
	}
	if len(suspects) > 0 {
		e.log.Warn("sbr: an earlier process could not reach some members, and nothing was decided about them",
			"members", len(suspects))
		e.suspect(suspects)
	}
}

// suspect makes the resolver's suspects of members that are remembered and not here. Loop only.
func (e *engine) suspect(places []place) {
	members := make([]sbr.Member, len(places))
	for i := range places {
		members[i] = places[i].member()
	}
	e.step(sbr.Suspected{Members: members})
	for i := range places {
		e.members.miss(places[i].ID)
	}
}

// remember stores the members whenever they change, since what takes them from Serf's list may also restart
// this process. A member that takes no part, or no longer, stores nothing: the next incarnation need not look
// for what it sees. Loop only.
func (e *engine) remember(s *sbr.Snapshot) {
	if e.cfg.Memory == nil || e.remembering || e.newcomer || e.leaving || e.ended ||
		e.clock() < e.rememberAgain {
		return
	}
	last := e.cfg.Memory.load()
	v := &s.Verdict
	if v.Partial || !v.Eligible(e.self.ID, e.self.Seen) {
		return
	}
	next := last
	next.Members, next.Verdict, next.Downed, next.Left = nil, *v.Clone(), e.downedPlaces(&last, s),
		e.hasLeft.Load()
	for i := range s.Members {
		if m := &s.Members[i]; m.ID != s.Self && m.Status != sbr.Down && !isUntagged(m.ID) {
			next.Members = append(next.Members, placeOf(m))
		}
	}
	if reflect.DeepEqual(last, next) {
		return
	}
	e.remembering = true
	e.spawn(&e.workers, func() {
		err := e.cfg.Memory.update(func(r *remembered) {
			r.Members, r.Verdict, r.Downed, r.Left = next.Members, next.Verdict, next.Downed, e.hasLeft.Load()
		})
		e.inbox.Post(func() {
			e.remembering, e.unwritten = false, oneLine(err)
			if err != nil {
				e.rememberAgain = e.clock() + complainEvery // what wakes the loop now is this very failure
				e.complain.log("sbr: the state file cannot be written: a restart would forget who the members are",
					"error", err)
			}
		})
	})
}

// soughtFor is how long the address of a downed member is tried: as long as Serf itself tries to reach a
// failed member.
const soughtFor = 24 * time.Hour

// downedPlaces are where members were that have been downed and whose hosts are not here again.
func (e *engine) downedPlaces(last *remembered, s *sbr.Snapshot) (downed []place) {
	now := time.Now()
	for _, p := range last.Downed {
		if now.Sub(time.Unix(p.DownedAt, 0)) < soughtFor && !isHere(&p, s) {
			downed = append(downed, p)
		}
	}
	for _, p := range last.Members {
		known := slices.ContainsFunc(downed, func(d place) bool { return d.ID == p.ID })
		if e.resolver.KeptOut(p.ID, p.Seen) && !isHere(&p, s) && !known {
			p.Suspect, p.DownedAt = false, now.Unix()
			downed = append(downed, p)
		}
	}
	return downed
}

// isHere reports whether a member takes part where the member was, at its address or under its name.
func isHere(p *place, s *sbr.Snapshot) bool {
	return slices.ContainsFunc(s.Members, func(m sbr.Member) bool {
		return m.Status != sbr.Down && !m.Unreachable && (m.Addr == p.Addr || hostOf(m.ID) == hostOf(p.ID))
	})
}

// rememberLeave notes that this member left the others in peace.
func (e *engine) rememberLeave() {
	e.hasLeft.Store(true)
	if err := e.cfg.Memory.update(func(r *remembered) { r.Left = true }); err != nil {
		e.log.Warn("sbr: the state file cannot be written: the next start will not know that this member left in peace",
			"error", err)
	}
}

// rememberEnd notes that this incarnation went down.
func (e *engine) rememberEnd() {
	err := e.cfg.Memory.update(func(r *remembered) {
		r.Over, r.Members = true, slices.Clone(r.Members)
		for i := range r.Members {
			r.Members[i].Suspect = false // what this incarnation was in the middle of is over
		}
	})
	if err != nil {
		e.log.Warn("sbr: the state file cannot be written: the next process may go on as this incarnation, and go down as well",
			"error", err)
	}
}
