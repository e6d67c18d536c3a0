package arch

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/serf-sbr/serf-sbr"

// root is the module's folder, seen from this one.
var root = filepath.Join("..", "..")

// rule says what the packages that match patterns may reach.
type rule struct {
	folder   string
	patterns []string
	optional bool     // the folder may be absent
	allow    []string // if set, nothing else but the standard library is allowed
	deny     []string
	but      []string // what of deny is allowed all the same
}

// A path stands for itself and everything below it.
var rules = []rule{
	{
		folder:   "sbr",
		patterns: []string{"./sbr/..."},
		allow:    []string{module + "/sbr"},
	},
	{
		folder:   "strategies",
		patterns: []string{"./strategies/..."},
		allow:    []string{module + "/sbr", module + "/strategies"},
	},
	{
		folder:   "lease",
		patterns: []string{"./lease", "./lease/memory"},
		allow:    []string{module + "/lease", module + "/sbr", module + "/internal/shared"},
		deny:     []string{module + "/lease/kubernetes", module + "/lease/leasetest"},
	},
	{
		folder:   "lease/fence",
		patterns: []string{"./lease/fence"},
		allow: []string{module + "/lease/fence", module + "/internal/folder", "github.com/gofrs/flock",
			"golang.org/x/sys"},
	},
	{
		folder:   "internal/handover",
		patterns: []string{"./internal/slot", "./internal/handover", "./internal/codec"},
		allow: []string{module + "/sbr", module + "/internal/slot", module + "/internal/handover",
			module + "/internal/codec"},
		deny: []string{module + "/internal/slot/drive"},
	},
	{
		folder:   "sharding/allocation",
		patterns: []string{"./sharding/allocation"},
		allow:    []string{module + "/sbr", module + "/sharding/allocation", "github.com/cespare/xxhash/v2"},
	},
	{
		folder:   "downing",
		patterns: []string{"./downing"},
		deny: []string{"k8s.io", "go.etcd.io", "go.mongodb.org", "github.com/jackc", module + "/cmd",
			module + "/simulator"},
	},
	{
		folder:   "simulator",
		patterns: []string{"./simulator/..."},
		optional: true,
		deny: []string{
			"github.com/hashicorp/memberlist",
			"github.com/hashicorp/serf",
			"go.etcd.io", "go.mongodb.org", "github.com/jackc",
			"go.opentelemetry.io",
			"k8s.io",
			"sigs.k8s.io",
			module + "/cmd",
			module + "/downing",
		},
		but: []string{module + "/downing/wire"}, // what members say to each other, without any way to say it
	},
}

func (r rule) allows(path string) bool {
	if under(path, r.deny) && !under(path, r.but) {
		return false
	}
	return r.allow == nil || under(path, r.allow)
}

func under(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}

func TestImports(t *testing.T) {
	for _, r := range rules {
		t.Run(r.folder, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(root, r.folder)); errors.Is(err, fs.ErrNotExist) && r.optional {
				t.Skipf("absent: %s/", r.folder)
			}
			pkgs := list(t, r.patterns...)
			matched := pkgs.matched()
			if len(matched) == 0 {
				t.Fatalf("no package matches %v", r.patterns)
			}
			for _, chain := range violations(r, pkgs) {
				t.Errorf("forbidden: %s", strings.Join(chain, " -> "))
			}
			t.Logf("%d packages reach %d outside the standard library", len(matched), len(pkgs)-len(matched))
		})
	}
}

// TestRulesCanFail holds each rule against the whole module, which breaks all of them.
func TestRulesCanFail(t *testing.T) {
	pkgs := list(t, "./...")
	for _, r := range rules {
		if len(violations(r, pkgs)) == 0 {
			t.Errorf("rule %s finds nothing to forbid in the whole module", r.folder)
		}
	}
}

func TestViolations(t *testing.T) {
	pkgs := packages{
		{ImportPath: module + "/sbr", Imports: []string{module + "/sbr/inner", "errors"}},
		{ImportPath: module + "/sbr/inner", DepOnly: true, Imports: []string{"example.com/a"}},
		{ImportPath: "example.com/a", DepOnly: true, Imports: []string{"example.com/b"}},
		{ImportPath: "example.com/b", DepOnly: true},
	}
	inner := []string{module + "/sbr", module + "/sbr/inner"}
	for _, tc := range []struct {
		name string
		rule rule
		want [][]string
	}{
		{"nothing else allowed", rule{allow: []string{module + "/sbr"}}, [][]string{
			append(slices.Clone(inner), "example.com/a"),
		}},
		{"one denied", rule{deny: []string{"example.com/b"}}, [][]string{
			append(slices.Clone(inner), "example.com/a", "example.com/b"),
		}},
		{"a longer name is another folder", rule{deny: []string{module + "/sb", "example.com/bb", "example.com/"}}, nil},
		{"deny beats allow", rule{allow: []string{module, "example.com"}, deny: []string{module + "/sbr/inner"}}, [][]string{inner}},
		{"all allowed", rule{allow: []string{module, "example.com"}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := violations(tc.rule, pkgs)
			if !slices.EqualFunc(got, tc.want, slices.Equal) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// violations returns a shortest chain of imports from a matched package to each forbidden one; it does not
// look beyond a forbidden package.
func violations(r rule, pkgs packages) [][]string {
	byPath := make(map[string]pkg, len(pkgs))
	for _, p := range pkgs {
		byPath[p.ImportPath] = p
	}
	queue := pkgs.matched()
	from := make(map[string]string)
	for _, path := range queue {
		from[path] = ""
	}
	var chains [][]string
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		if !r.allows(path) {
			var chain []string
			for p := path; p != ""; p = from[p] {
				chain = append(chain, p)
			}
			slices.Reverse(chain)
			chains = append(chains, chain)
			continue
		}
		for _, imp := range byPath[path].Imports {
			_, seen := from[imp]
			if _, listed := byPath[imp]; listed && !seen {
				from[imp] = path
				queue = append(queue, imp)
			}
		}
	}
	return chains
}

// pkg is what this test reads of the answer of `go list`.
type pkg struct {
	ImportPath string
	Standard   bool
	DepOnly    bool // not matched by a pattern, only imported
	Imports    []string
}

type packages []pkg

func (ps packages) matched() []string {
	var paths []string
	for _, p := range ps {
		if !p.DepOnly {
			paths = append(paths, p.ImportPath)
		}
	}
	return paths
}

// list returns the packages that match the patterns and all that they import, the standard library left out.
func list(t *testing.T, patterns ...string) packages {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-deps", "-json=ImportPath,Standard,DepOnly,Imports"}, patterns...)...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.String())
	}
	var pkgs packages
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		if !p.Standard {
			pkgs = append(pkgs, p)
		}
	}
}
