package sbr

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is the place of a member in its life, with the names of the reference resolver.
// The zero value is Joining.
type Status uint8

// The statuses in the order of a member's life. Serf's alive, leaving and left map to Up (or Joining),
// Leaving and removal.
const (
	Joining Status = iota
	WeaklyUp
	Up
	Leaving
	Exiting
	Down
)

var statusNames = [...]string{"joining", "weakly-up", "up", "leaving", "exiting", "down"}

// String returns the name that configuration and JSON use.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "status(" + strconv.Itoa(int(s)) + ")"
}

// ParseStatus reads a name written by Status.String; ok is false for any other text.
func ParseStatus(name string) (s Status, ok bool) {
	i := slices.Index(statusNames[:], name)
	return Status(max(i, 0)), i >= 0
}

// ID names one incarnation of a member: a node that restarts under its old name is another ID.
// It is opaque and unique within a system; the empty ID names no member.
type ID string

// Member is what the resolver knows of one incarnation.
// A Member is a value: share it freely, but do not change Roles once it was handed over.
type Member struct {
	// ID is the incarnation. Required.
	ID ID
	// Name is the node name, shown to people. It may be reused by a later incarnation.
	Name string
	// Addr is host:port; members are ordered by it (host, then port as a number), by Name where it is empty.
	Addr string
	// Roles are the roles this member plays; a strategy with a role counts only members that have it.
	Roles []string
	// Born orders members by age, smaller is older (Unix seconds, or a plain rank). Zero: youngest of all.
	Born int64
	// Seen is the fencing token this incarnation had read when it started. Zero: no verdict existed.
	Seen uint64
	// Status is the place in the member's life.
	Status Status
	// Unreachable says that the member cannot be reached from here.
	Unreachable bool
	// Unlisted says that the cluster no longer lists the member, although nothing proves its end: it may run
	// where it cannot be reached, and decide. It stays a suspect until it is decided about or seen again.
	Unlisted bool

	// since is when the member became unreachable; meaningless while it is not.
	since time.Duration
	// awaiting says that the cluster calls the member alive, but it was not seen while no member was
	// unreachable.
	awaiting bool
	// mustGo says that the verdict of this member's lease downed it: it must be gone before the release.
	mustGo bool
}

// HasRole reports whether the member plays role; every member plays the empty role.
func (m *Member) HasRole(role string) bool {
	return role == "" || slices.Contains(m.Roles, role)
}

// counted reports whether a member belongs to the base set (reference: members without joining and exiting).
func (m *Member) counted() bool { return m.Status == Up || m.Status == Leaving }

// Downable reports whether a decision may down the member: Exiting and Down members are on their way out.
func (m *Member) Downable() bool { return m.Status <= Leaving }

// place is what members are ordered by first: the address, or the name where there is none.
func (m *Member) place() (host string, port int) {
	if m.Addr == "" {
		return m.Name, 0
	}
	host, p, err := net.SplitHostPort(m.Addr)
	if err != nil {
		return m.Addr, 0
	}
	port, err = strconv.Atoi(p)
	if err != nil {
		return m.Addr, 0
	}
	return host, port
}

// CompareMembers orders members by address: host, then port as a number; by name where there is none. Ties go
// by name, then incarnation. The first of a side in this order is its leader.
func CompareMembers(a, b *Member) int {
	if a.Addr != b.Addr {
		ah, ap := a.place()
		bh, bp := b.place()
		if c := cmp.Or(strings.Compare(ah, bh), cmp.Compare(ap, bp)); c != 0 {
			return c
		}
	}
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.ID), string(b.ID)))
}

// Older reports whether a is older than b: by Born, ties by address; without a birth it is the youngest.
func Older(a, b *Member) bool {
	switch {
	case a.Born == b.Born:
		return CompareMembers(a, b) < 0
	case a.Born == 0 || b.Born == 0:
		return b.Born == 0
	default:
		return a.Born < b.Born
	}
}
