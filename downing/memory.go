package downing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// ErrMemoryBusy is wrapped by Memory.Open while another process of the same node and system uses the folder.
var ErrMemoryBusy = errors.New("downing: another process uses the state folder")

// Memory keeps what must outlive the process of a member, in one file of a folder on its host: which incarnation it was, whether that went
// down, who the other members were, and whom it could not reach when nothing was decided yet. Only one process at a time can have it open, so
// the next one proves by it that the one before has ended. It is safe for concurrent use.
type Memory struct {
	path string
	lock *flock.Flock

	mu   sync.Mutex
	last remembered
}

// remembered is what the file holds.
type remembered struct {
	// Incarnation is the newest one of this node, Before are those before it, the newest first.
	Incarnation string   `json:"incarnation"`
	Before      []string `json:"before,omitempty"`
	// Over says that the incarnation went down.
	Over bool `json:"over,omitempty"`
	// Members are the others in the last view that counted: that of an incarnation which took part. Verdict is what had left them,
	// zero if there was none.
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
	return place{ID: m.ID, Addr: m.Addr, Roles: m.Roles, Born: m.Born, Seen: m.Seen, Suspect: m.Unreachable && m.Status <= sbr.Up}
}

func (p *place) member() sbr.Member {
	return sbr.Member{ID: p.ID, Name: NameOf(p.ID), Addr: p.Addr, Roles: p.Roles, Born: p.Born, Seen: p.Seen}
}

func (p *place) equal(o *place) bool {
	return p.ID == o.ID && p.Addr == o.Addr && slices.Equal(p.Roles, o.Roles) && p.Born == o.Born && p.Seen == o.Seen &&
		p.Suspect == o.Suspect && p.DownedAt == o.DownedAt
}

func samePlaces(a, b []place) bool {
	return slices.EqualFunc(a, b, func(x, y place) bool { return x.equal(&y) })
}

func (r *remembered) equal(o *remembered) bool {
	return r.Incarnation == o.Incarnation && r.Over == o.Over && slices.Equal(r.Before, o.Before) &&
		samePlaces(r.Members, o.Members) && sameVerdict(&r.Verdict, &o.Verdict) && r.Left == o.Left && samePlaces(r.Downed, o.Downed)
}

// sameVerdict compares what may change: a verdict stays as it is, who has left since does not.
func sameVerdict(a, b *sbr.Verdict) bool {
	return a.Token == b.Token && a.DecidedBy == b.DecidedBy && slices.Equal(a.Left, b.Left) && slices.Equal(a.Heirs, b.Heirs)
}

// NewMemory returns the memory of a system in a folder. It has to be opened before a Provider may use it.
func NewMemory(dir, system string) *Memory {
	base := filepath.Join(dir, fileName(system))
	return &Memory{path: base + ".json", lock: flock.New(base + ".lock")}
}

// Open reads what is remembered, and keeps other processes out until Close. It makes the folder if there is none, and may be tried again.
// Errors: ErrMemoryBusy, those of the file system, and a file that is no memory.
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
	data, err := os.ReadFile(m.path)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last = (remembered{}); err == nil {
		err = json.Unmarshal(data, &m.last)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = m.lock.Close()
		return fmt.Errorf("downing: the state file %s: %w", m.path, err)
	}
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

func (m *Memory) load() remembered {
	if m == nil {
		return remembered{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// update changes what is remembered. When it returns without an error that outlives a power loss.
func (m *Memory) update(change func(*remembered)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.lock.Locked() {
		return fmt.Errorf("%s: %w", m.path, fs.ErrClosed)
	}
	r := m.last
	change(&r)
	if m.last.equal(&r) {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp := m.path + ".new"
	if err := writeSynced(temp, append(data, '\n')); err != nil {
		return err
	}
	if err := os.Rename(temp, m.path); err != nil {
		return err
	}
	m.last = r
	return nil
}

func writeSynced(path string, data []byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// begin remembers that this incarnation has begun, before anybody can see it, and returns the tag that names its predecessors.
func (e *engine) begin() (was string, err error) {
	m := e.cfg.Memory
	if m == nil {
		return "", nil
	}
	err = m.update(func(r *remembered) {
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
	for _, id := range m.load().Before {
		uids = append(uids, uidOf(sbr.ID(id)))
	}
	return strings.Join(uids, ","), nil
}
