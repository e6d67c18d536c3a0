package sharding

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Table lists the owners of one type's shards, as far as the queried member knows.
type Table struct {
	Type string `json:"type"`
	// Coordinator is the member that runs the coordinator, by name: its Table tells Waiting and Unowned from
	// Moving. Empty: not known.
	Coordinator string `json:"coordinator"`
	// Recovered: the queried member is the coordinator's, and knows what all members run except the Silent
	// ones. Strangers are members with other shards configured. Both by name.
	Recovered bool     `json:"recovered,omitempty"`
	Silent    []string `json:"silent,omitempty"`
	Strangers []string `json:"strangers,omitempty"`
	Shards    []Row    `json:"shards"`
}

// Row is one shard.
type Row struct {
	Owner
	// Unreachable: the queried member does not reach the owner.
	Unreachable bool `json:"unreachable,omitempty"`
	// To is the member that the shard moves to, by name; only the coordinator's member knows it.
	To string `json:"to,omitempty"`
	// LeaseHolder is the holder of the shard's lease that the queried member waits for. Empty: it waits for
	// none, or the holder is unknown.
	LeaseHolder string `json:"lease-holder,omitempty"`
}

// Says is the state in words: "moving to n2, its lease is held by n1, unreachable".
func (r *Row) Says() string {
	says := string(r.State)
	if r.To != "" {
		says += " to " + r.To
	}
	if r.LeaseHolder != "" {
		says += ", its lease is held by " + r.LeaseHolder
	}
	if r.Unreachable {
		says += ", unreachable"
	}
	return says
}

// Well reports whether the shard runs on a reachable member.
func (r *Row) Well() bool { return r.State == Running && !r.Unreachable }

// Sort orders the rows of numbered shards by number. They come in the order of names.
func (t *Table) Sort() {
	number := func(r Row) int {
		n, _ := strconv.Atoi(r.Shard)
		return n // 0 for a name: names stay as they are
	}
	slices.SortStableFunc(t.Shards, func(a, b Row) int { return cmp.Compare(number(a), number(b)) })
}

// Table returns the owners, by shard.
func (m *Manager) Table() Table {
	t := Table{Type: m.cfg.Type, Shards: make([]Row, len(m.cfg.Shards))}
	if l := m.single.Locator(); l != nil {
		t.Coordinator = l.Location().Name
	}
	owners := m.Owners()
	known, _ := m.known.Get()
	peers := m.cluster.Peers()
	for s := range owners {
		p := peers.Find(owners[s].ID)
		t.Shards[s] = Row{
			Owner: owners[s], Unreachable: p != nil && p.Unreachable, LeaseHolder: m.driver.LeaseHolder(s),
		}
		if known == nil {
			continue
		}
		x := &known.Shards[s]
		if owners[s].State == Running && (x.To == "" || x.To == owners[s].ID) {
			continue
		}
		t.Shards[s].To = downing.NameOf(x.To)
		if x.State != coordinator.Running { // the run itself reports that it runs
			t.Shards[s].State = State(x.State)
		}
	}
	if known != nil {
		t.Recovered, t.Silent, t.Strangers = known.Recovered, names(known.Silent), names(known.Strangers)
	}
	return t
}

func names(ids []sbr.ID) (names []string) {
	for _, id := range ids {
		names = append(names, downing.NameOf(id))
	}
	return names
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("shards").Parse(pageText))

// Handler answers with the tables of some types: a browser gets a page that renews itself, other clients get
// JSON; sbr shards uses the path /shards. It checks no access: serve it where only operators have access, or
// behind an authentication.
func Handler(managers ...*Manager) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "nothing can be changed here: use GET", http.StatusMethodNotAllowed)
			return
		}
		tables := make([]Table, len(managers))
		for i, m := range managers {
			tables[i] = m.Table()
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Vary", "Accept")
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			for i := range tables {
				tables[i].Sort()
			}
			_ = page.Execute(w, tables)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(tables) // the client may have gone
	})
}
