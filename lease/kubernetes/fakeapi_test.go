package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

type object = map[string]any

// fakeAPI is the leases API of one namespace with the optimistic concurrency of the real one, as measured: what it answers to a
// conditional write was seen on a real API server first.
type fakeAPI struct {
	*httptest.Server
	namespaces []string

	mu        sync.Mutex
	revision  int
	compacted int
	leases    map[string]object
	events    []fakeEvent
	changed   chan struct{}
	calls     []string
	forbidden map[string]bool
	// hook answers a request itself if it returns true. It runs before the request is looked at.
	hook func(w http.ResponseWriter, r *http.Request) bool
	// after runs once the request was executed; true drops the answer.
	after func(r *http.Request) bool
	// bookmarks are sent to every stream that allows them, at its opening.
	bookmarks bool
	kick      chan struct{}
}

type fakeEvent struct {
	revision int
	name     string
	event    object
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{
		namespaces: []string{"team-a"},
		revision:   100,
		leases:     map[string]object{},
		changed:    make(chan struct{}),
		kick:       make(chan struct{}),
		forbidden:  map[string]bool{},
	}
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = true
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(func() {
		f.dropStreams()
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fakeAPI) restConfig() *rest.Config {
	return &rest.Config{Host: f.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: certificatePEM(f.Certificate())}}
}

// dropStreams ends all open watches without an error.
func (f *fakeAPI) dropStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.kick)
	f.kick = make(chan struct{})
}

func (f *fakeAPI) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeAPI) count(verb string) (n int) {
	f.with(func() {
		for _, call := range f.calls {
			if call == verb {
				n++
			}
		}
	})
	return n
}

func (f *fakeAPI) made() (calls []string) {
	f.with(func() { calls = slices.Clone(f.calls) })
	return calls
}

func (f *fakeAPI) resetCalls() { f.with(func() { f.calls = nil }) }

func (f *fakeAPI) stored(name string) (l object) {
	f.with(func() { l = clone(f.leases[name]) })
	return l
}

// put stores a lease as somebody else would, with a new uid if there was none.
func (f *fakeAPI) put(name string, l object) {
	f.with(func() { f.store(name, clone(l)) })
}

func (f *fakeAPI) remove(name string) {
	f.with(func() {
		gone := clone(f.leases[name])
		delete(f.leases, name)
		f.revision++
		meta(gone)["resourceVersion"] = strconv.Itoa(f.revision)
		f.tell("DELETED", name, gone)
	})
}

// store needs the lock.
func (f *fakeAPI) store(name string, l object) object {
	kind := "MODIFIED"
	m := meta(l)
	if old, ok := f.leases[name]; ok {
		m["uid"] = meta(old)["uid"]
	} else {
		kind = "ADDED"
		m["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", f.revision)
	}
	f.revision++
	m["name"], m["namespace"], m["resourceVersion"] = name, f.namespaces[0], strconv.Itoa(f.revision)
	l["apiVersion"], l["kind"] = "coordination.k8s.io/v1", "Lease"
	f.leases[name] = l
	f.tell(kind, name, clone(l))
	return l
}

func (f *fakeAPI) tell(kind, name string, l object) {
	f.events = append(f.events, fakeEvent{f.revision, name, object{"type": kind, "object": l}})
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /apis/coordination.k8s.io/v1/namespaces/NS/leases[/NAME]
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := ""
	if len(parts) == 7 {
		name = parts[6]
	}
	verb := map[string]string{"GET": "get", "PUT": "update", "PATCH": "patch", "POST": "create"}[r.Method]
	if r.URL.Query().Get("watch") != "" {
		verb, name = "watch", strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	}
	f.mu.Lock()
	f.calls = append(f.calls, verb)
	hook, after := f.hook, f.after
	f.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	if verb == "watch" {
		f.watch(w, r, name)
		return
	}
	if len(parts) == 4 { // /api/v1/namespaces/NS
		writeJSON(w, 200, object{"kind": "Namespace", "metadata": object{"name": parts[3], "uid": "uid-of-" + parts[3]}})
		return
	}
	status, answer := f.execute(verb, parts[4], name, r)
	if after != nil && after(r) {
		panic(http.ErrAbortHandler)
	}
	writeJSON(w, status, answer)
}

func (f *fakeAPI) execute(verb, namespace, name string, r *http.Request) (int, object) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return failure(500, "InternalError", "", name, err.Error())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, exists := f.leases[name]
	if namespace != f.namespaces[0] {
		old, exists = nil, false
	}
	verbs := []string{verb}
	if verb == "update" && !exists {
		verbs = append(verbs, "create")
	}
	for _, v := range verbs {
		if f.forbidden[v] {
			return denied(v, name)
		}
	}
	switch verb {
	case "get":
		if !exists {
			return notFound(name)
		}
		return 200, clone(old)
	case "patch":
		if !exists {
			return notFound(name)
		}
		var patch object
		if r.Header.Get("Content-Type") != "application/merge-patch+json" || json.Unmarshal(body, &patch) != nil {
			return failure(400, "BadRequest", "", name, "not a merge patch")
		}
		return f.update(name, old, merge(clone(old), patch).(object), r)
	default:
		var next object
		if json.Unmarshal(body, &next) != nil {
			return failure(400, "BadRequest", "", name, "not JSON")
		}
		if exists {
			return f.update(name, old, next, r)
		}
		if !slices.Contains(f.namespaces, namespace) {
			return failure(404, "NotFound", "namespaces", namespace, fmt.Sprintf("namespaces %q not found", namespace))
		}
		if _, ok := meta(next)["uid"]; ok {
			return failure(409, "Conflict", "leases", name, "StorageError: invalid object, Code: 4, UID in precondition")
		}
		return f.accept(201, name, next, r)
	}
}

func (f *fakeAPI) update(name string, old, next object, r *http.Request) (int, object) {
	version, _ := meta(next)["resourceVersion"].(string)
	uid, hasUID := meta(next)["uid"]
	switch {
	case version == "":
		return invalid(name, "metadata.resourceVersion", "must be specified for an update")
	case version != meta(old)["resourceVersion"]:
		return failure(409, "Conflict", "leases", name, "the object has been modified; please apply your changes to the latest version and try again")
	case hasUID && uid != meta(old)["uid"]:
		return invalid(name, "metadata.uid", "field is immutable")
	}
	meta(next)["uid"] = meta(old)["uid"]
	if reflect.DeepEqual(old, next) {
		return 200, clone(old) // a write without a change does not move the version
	}
	return f.accept(200, name, next, r)
}

func (f *fakeAPI) accept(code int, name string, l object, r *http.Request) (int, object) {
	spec, _ := l["spec"].(object)
	if n, ok := spec["leaseDurationSeconds"].(float64); ok && n <= 0 {
		return invalid(name, "spec.leaseDurationSeconds", "must be greater than 0")
	}
	size := 0
	annotations, _ := meta(l)["annotations"].(object)
	for k, v := range annotations {
		size += len(k) + len(v.(string))
	}
	if size > 256<<10 {
		return invalid(name, "metadata.annotations", "Too long: may not be more than 262144 bytes")
	}
	if r.URL.Query().Get("dryRun") == "All" {
		l = clone(l)
		meta(l)["uid"], meta(l)["resourceVersion"] = "dry", "1"
		return code, l
	}
	return code, clone(f.store(name, l))
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.Lock()
	if f.forbidden["watch"] || name == "" {
		f.mu.Unlock()
		status, answer := denied("watch", name)
		writeJSON(w, status, answer)
		return
	}
	from := f.revision
	var first []object
	if version := r.URL.Query().Get("resourceVersion"); version != "" {
		from, _ = strconv.Atoi(version)
		if from < f.compacted {
			_, status := failure(410, "Expired", "", "", fmt.Sprintf("too old resource version: %d (%d)", from, f.compacted))
			first = append(first, object{"type": "ERROR", "object": status})
		}
	} else if l, ok := f.leases[name]; ok {
		first = append(first, object{"type": "ADDED", "object": clone(l)})
	}
	if f.bookmarks && r.URL.Query().Get("allowWatchBookmarks") == "true" {
		mark := object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": object{"resourceVersion": strconv.Itoa(f.revision)}}
		first = append(first, object{"type": "BOOKMARK", "object": mark})
	}
	kick := f.kick
	f.mu.Unlock()

	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	flush := w.(http.Flusher).Flush
	for _, e := range first {
		_ = out.Encode(e)
	}
	flush()
	for {
		f.mu.Lock()
		changed := f.changed
		var news []object
		for _, e := range f.events {
			if e.revision > from && e.name == name {
				news = append(news, e.event)
				from = e.revision
			}
		}
		f.mu.Unlock()
		for _, e := range news {
			_ = out.Encode(e)
		}
		flush()
		select {
		case <-r.Context().Done():
			return
		case <-kick:
			return
		case <-changed:
		}
	}
}

func merge(target any, patch object) any {
	t, ok := target.(object)
	if !ok {
		t = object{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(t, k)
		case object:
			t[k] = merge(t[k], v)
		default:
			t[k] = v
		}
	}
	return t
}

func meta(l object) object {
	m, ok := l["metadata"].(object)
	if !ok {
		m = object{}
		l["metadata"] = m
	}
	return m
}

func clone(l object) object {
	if l == nil {
		return nil
	}
	c := maps.Clone(l)
	for k, v := range c {
		if o, ok := v.(object); ok {
			c[k] = clone(o)
		}
	}
	return c
}

func failure(code int, reason, kind, name, message string) (int, object) {
	return code, object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": object{"name": name, "group": "coordination.k8s.io", "kind": kind},
	}
}

func notFound(name string) (int, object) {
	return failure(404, "NotFound", "leases", name, fmt.Sprintf("leases.coordination.k8s.io %q not found", name))
}

func denied(verb, name string) (int, object) {
	return failure(403, "Forbidden", "leases", name, fmt.Sprintf(
		`leases.coordination.k8s.io %q is forbidden: User "u" cannot %s resource "leases" in API group "coordination.k8s.io" in the namespace "team-a"`, name, verb))
}

func invalid(name, field, message string) (int, object) {
	code, status := failure(422, "Invalid", "Lease", name, fmt.Sprintf("Lease.coordination.k8s.io %q is invalid: %s: %s", name, field, message))
	status["details"].(object)["causes"] = []any{object{"reason": "FieldValueInvalid", "message": message, "field": field}}
	return code, status
}

func writeJSON(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
