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

// Table is who runs what of one type, as far as the member knows that is asked.
type Table struct {
	Type string `json:"type"`
	// Coordinator is the member that says who runs what, by name: there Waiting and Unowned are told apart
	// from Moving. Empty: it is not known.
	Coordinator string `json:"coordinator"`
	// Recovered: it is the member that is asked, and knows what all members run, but for those that are
	// Silent. Strangers are configured with other shards. Both by name.
	Recovered bool     `json:"recovered,omitempty"`
	Silent    []string `json:"silent,omitempty"`
	Strangers []string `json:"strangers,omitempty"`
	Shards    []Row    `json:"shards"`
}

// Row is one shard.
type Row struct {
	Owner
	// Unreachable: the owner is, from the member that is asked.
	Unreachable bool `json:"unreachable,omitempty"`
	// To is the member that the shard is on its way to, by name; the coordinator's member knows.
	To string `json:"to,omitempty"`
	// LeaseHolder holds the lease that the member that is asked waits for, to run the shard. Empty: it does
	// not wait for one, or nobody is known to hold it.
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

// Well reports whether the shard runs on a member that can be reached.
func (r *Row) Well() bool { return r.State == Running && !r.Unreachable }

// Sort orders the rows of numbered shards by number. They come in the order of names.
func (t *Table) Sort() {
	number := func(r Row) int {
		n, _ := strconv.Atoi(r.Shard)
		return n // 0 for a name: names stay as they are
	}
	slices.SortStableFunc(t.Shards, func(a, b Row) int { return cmp.Compare(number(a), number(b)) })
}

// Table returns who runs what, by shard.
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
		if x.State != coordinator.Running { // it will be told by the run itself
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

// Handler answers with the tables of some types: a browser gets a page that renews itself, others get JSON, as sbr shards
// does, which asks at the path /shards. It lets everybody in: serve it where only operators come, or behind what checks
// who asks.
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
		_ = json.NewEncoder(w).Encode(tables) // whoever went away does not want it
	})
}
