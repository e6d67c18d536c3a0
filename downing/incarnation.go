package downing

import (
	"crypto/rand"
	"encoding/base32"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The tags that tell incarnations apart. Together they take about 80 of Serf's 512 bytes.
const (
	TagUID     = "sbr_uid"   // random, new at each start
	TagBorn    = "sbr_born"  // Unix milliseconds, base 36
	TagSeen    = "sbr_seen"  // fencing token read at the start, base 36
	TagConfig  = "sbr_cfg"   // digest of the safety-relevant settings
	TagStore   = "sbr_store" // which store keeps the lease; absent: that is not known
	TagIn      = "sbr_in"    // fencing token of the verdict whose cluster it has found, base 36
	TagProbe   = "sbr_udp"   // where this member answers probes, if its node cannot
	TagServes  = "sbr_one"   // the topics that it serves (Provider.Offer), separated by commas
	TagVersion = "sbr_v"     // version of what members say to each other; absent: 1, whose members say no goodbye
	TagWas     = "sbr_was"   // the uids of its predecessors, which have ended for certain, separated by commas
	TagRole    = "role"      // Serf's own convention; several roles are separated by commas
)

// wireVersion is this one's TagVersion.
const wireVersion = "2"

// maxPredecessors bounds TagWas: those before the last few that nobody saw start have long been decided about.
const maxPredecessors = 3

// predecessors reads a TagWas of another member.
func predecessors(tag string) []string {
	uids := strings.Split(tag, ",")
	return uids[:min(len(uids), maxPredecessors)]
}

// untaggedPrefix marks the ids of members that run no resolver.
const untaggedPrefix = "?"

func newUID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func incarnation(name, uid string) sbr.ID { return sbr.ID(name + "#" + uid) }

// newIncarnation is a member that begins now.
func newIncarnation(name string) sbr.Member {
	return sbr.Member{ID: incarnation(name, newUID()), Name: name, Born: born(time.Now())}
}

// uidOf returns what tells an incarnation from others of the same name.
func uidOf(id sbr.ID) string { return string(id[strings.LastIndexByte(string(id), '#')+1:]) }

// idOf returns the incarnation of a Serf member.
func idOf(m *serf.Member) sbr.ID {
	if uid := m.Tags[TagUID]; uid != "" {
		return incarnation(m.Name, uid)
	}
	return sbr.ID(untaggedPrefix + m.Name)
}

// hasResigned reports whether the resolver of a node has been stopped. One whose agent has merely forgotten its tags has not.
func hasResigned(m *serf.Member) bool {
	uid, tagged := m.Tags[TagUID]
	return tagged && uid == ""
}

// isNodeOf reports whether a Serf member is the node of an incarnation, with its tags or without.
func isNodeOf(m *serf.Member, id sbr.ID) bool {
	return idOf(m) == id || isUntagged(idOf(m)) && m.Name == NameOf(id)
}

func isUntagged(id sbr.ID) bool { return strings.HasPrefix(string(id), untaggedPrefix) }

// NameOf returns the node name in an incarnation.
func NameOf(id sbr.ID) string {
	if name, untagged := strings.CutPrefix(string(id), untaggedPrefix); untagged {
		return name
	}
	if i := strings.LastIndexByte(string(id), '#'); i >= 0 {
		return string(id[:i])
	}
	return string(id)
}

func memberOf(m *serf.Member, status sbr.Status) sbr.Member {
	return sbr.Member{
		ID:     idOf(m),
		Name:   m.Name,
		Addr:   addrOf(m),
		Roles:  roles(m.Tags[TagRole]),
		Born:   parse36(m.Tags[TagBorn]),
		Seen:   uint64(parse36(m.Tags[TagSeen])),
		Status: status,
	}
}

func addrOf(m *serf.Member) string {
	return net.JoinHostPort(m.Addr.String(), strconv.Itoa(int(m.Port)))
}

func roles(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// parse36 reads a number that another member wrote; whatever is no number counts as zero: youngest, and older than any verdict.
func parse36(s string) int64 {
	n, err := strconv.ParseInt(s, 36, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func format36(n int64) string { return strconv.FormatInt(n, 36) }

func born(t time.Time) int64 { return t.UnixMilli() }
