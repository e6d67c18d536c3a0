// Package kubefake emulates the leases API of a kube-apiserver, for tests. What it answers to a conditional
// write was seen on a real API server first: the contract in test/kubernetes runs against both.
package kubefake

import (
	"encoding/json"
	"encoding/pem"
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

// Object is an object of the API as JSON has it.
type Object = map[string]any

// API is the leases API of one namespace with the optimistic concurrency of the real one. Its exported fields
// but Hook and After are read and changed inside of [API.With].
type API struct {
	*httptest.Server
	Namespaces []string

	mu        sync.Mutex
	Revision  int
	Leases    map[string]Object
	Events    []fakeEvent
	Announced []Object // the Events of core/v1
	changed   chan struct{}
	calls     []string
	Forbidden map[string]bool
	// Hook answers a request itself if it returns true. It runs before the request is looked at.
	Hook func(w http.ResponseWriter, r *http.Request) bool
	// After runs once the request was executed; true drops the answer.
	After func(r *http.Request) bool
	kick  chan struct{}
}

type fakeEvent struct {
	revision int
	name     string
	event    Object
}

// New starts one with the namespace "team-a", which ends with the test.
func New(t testing.TB) *API {
	f := &API{
		Namespaces: []string{"team-a"},
		Revision:   100,
		Leases:     map[string]Object{},
		changed:    make(chan struct{}),
		kick:       make(chan struct{}),
		Forbidden:  map[string]bool{},
	}
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = true
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	f.StartTLS()
	t.Cleanup(func() {
		f.DropStreams()
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// RESTConfig is how a client reaches it, with the token "secret".
func (f *API) RESTConfig() *rest.Config {
	return &rest.Config{Host: f.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})}}
}

// DropStreams ends all open watches without an error.
func (f *API) DropStreams() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.kick)
	f.kick = make(chan struct{})
}

// With runs change while no request is executed.
func (f *API) With(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Count is how many requests with that verb were made since ResetCalls.
func (f *API) Count(verb string) (n int) {
	f.With(func() {
		for _, call := range f.calls {
			if call == verb {
				n++
			}
		}
	})
	return n
}

// Made are the verbs of the requests since ResetCalls, in order.
func (f *API) Made() (calls []string) {
	f.With(func() { calls = slices.Clone(f.calls) })
	return calls
}

// ResetCalls forgets the requests so far.
func (f *API) ResetCalls() { f.With(func() { f.calls = nil }) }

// Stored is a copy of the object, or nil.
func (f *API) Stored(name string) (l Object) {
	f.With(func() { l = Clone(f.Leases[name]) })
	return l
}

// Put stores a lease as another client would, with a new uid if there was none.
func (f *API) Put(name string, l Object) {
	f.With(func() { f.PutLocked(name, Clone(l)) })
}

// Remove deletes the object as another client would.
func (f *API) Remove(name string) {
	f.With(func() {
		gone := Clone(f.Leases[name])
		delete(f.Leases, name)
		f.Revision++
		Meta(gone)["resourceVersion"] = strconv.Itoa(f.Revision)
		f.tell("DELETED", name, gone)
	})
}

// PutLocked is Put inside of With.
func (f *API) PutLocked(name string, l Object) Object {
	kind := "MODIFIED"
	m := Meta(l)
	if old, ok := f.Leases[name]; ok {
		m["uid"] = Meta(old)["uid"]
	} else {
		kind = "ADDED"
		m["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", f.Revision)
	}
	f.Revision++
	m["name"], m["namespace"], m["resourceVersion"] = name, f.Namespaces[0], strconv.Itoa(f.Revision)
	l["apiVersion"], l["kind"] = "coordination.k8s.io/v1", "Lease"
	f.Leases[name] = l
	f.tell(kind, name, Clone(l))
	return l
}

func (f *API) tell(kind, name string, l Object) {
	f.Events = append(f.Events, fakeEvent{f.Revision, name, Object{"type": kind, "object": l}})
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	hook, after := f.Hook, f.After
	f.mu.Unlock()
	if hook != nil && hook(w, r) {
		return
	}
	if verb == "watch" {
		f.watch(w, r, name)
		return
	}
	if len(parts) == 4 { // /api/v1/namespaces/NS
		WriteJSON(w, 200, Object{"kind": "Namespace",
			"metadata": Object{"name": parts[3], "uid": "uid-of-" + parts[3]}})
		return
	}
	if strings.HasSuffix(r.URL.Path, "/events") { // /api/v1/namespaces/NS/events
		f.announce(w, r)
		return
	}
	status, answer := f.execute(verb, parts[4], name, r)
	if after != nil && after(r) {
		panic(http.ErrAbortHandler)
	}
	WriteJSON(w, status, answer)
}

func (f *API) announce(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var event Object
	switch err := json.NewDecoder(r.Body).Decode(&event); {
	case err != nil:
		WriteJSON(w, 400, Object{"kind": "Status", "code": 400, "message": err.Error()})
	case f.Forbidden["events"]:
		_, answer := Failure(403, "Forbidden", "events",
			"", `events is forbidden: User "u" cannot create resource "events"`)
		WriteJSON(w, 403, answer)
	default:
		f.Announced = append(f.Announced, event)
		WriteJSON(w, 201, event)
	}
}

func (f *API) execute(verb, namespace, name string, r *http.Request) (int, Object) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Failure(500, "InternalError", "", name, err.Error())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, exists := f.Leases[name]
	if namespace != f.Namespaces[0] {
		old, exists = nil, false
	}
	verbs := []string{verb}
	if verb == "update" && !exists {
		verbs = append(verbs, "create")
	}
	for _, v := range verbs {
		if f.Forbidden[v] {
			return Denied(v, name)
		}
	}
	switch verb {
	case "get":
		if !exists {
			return NotFound(name)
		}
		return 200, Clone(old)
	case "patch":
		if !exists {
			return NotFound(name)
		}
		var patch Object
		if r.Header.Get("Content-Type") != "application/merge-patch+json" || json.Unmarshal(body, &patch) != nil {
			return Failure(400, "BadRequest", "", name, "not a merge patch")
		}
		return f.update(name, old, Merge(Clone(old), patch).(Object), r)
	default:
		var next Object
		if json.Unmarshal(body, &next) != nil {
			return Failure(400, "BadRequest", "", name, "not JSON")
		}
		if exists {
			return f.update(name, old, next, r)
		}
		if !slices.Contains(f.Namespaces, namespace) {
			return Failure(404, "NotFound", "namespaces", namespace, fmt.Sprintf("namespaces %q not found", namespace))
		}
		if _, ok := Meta(next)["uid"]; ok {
			return Failure(409, "Conflict", "leases", name,
				"StorageError: invalid object, Code: 4, UID in precondition")
		}
		return f.accept(201, name, next, r)
	}
}

func (f *API) update(name string, old, next Object, r *http.Request) (int, Object) {
	version, _ := Meta(next)["resourceVersion"].(string)
	uid, hasUID := Meta(next)["uid"]
	switch {
	case version == "":
		return Invalid(name, "metadata.resourceVersion", "must be specified for an update")
	case version != Meta(old)["resourceVersion"]:
		return Failure(409, "Conflict", "leases", name,
			"the object has been modified; please apply your changes to the latest version and try again")
	case hasUID && uid != Meta(old)["uid"]:
		return Invalid(name, "metadata.uid", "field is immutable")
	}
	Meta(next)["uid"] = Meta(old)["uid"]
	if reflect.DeepEqual(old, next) {
		return 200, Clone(old) // a write without a change does not move the version
	}
	return f.accept(200, name, next, r)
}

func (f *API) accept(code int, name string, l Object, r *http.Request) (int, Object) {
	spec, _ := l["spec"].(Object)
	if n, ok := spec["leaseDurationSeconds"].(float64); ok && n <= 0 {
		return Invalid(name, "spec.leaseDurationSeconds", "must be greater than 0")
	}
	size := 0
	annotations, _ := Meta(l)["annotations"].(Object)
	for k, v := range annotations {
		size += len(k) + len(v.(string))
	}
	if size > 256<<10 {
		return Invalid(name, "metadata.annotations", "Too long: may not be more than 262144 bytes")
	}
	if r.URL.Query().Get("dryRun") == "All" {
		l = Clone(l)
		Meta(l)["uid"], Meta(l)["resourceVersion"] = "dry", "1"
		return code, l
	}
	return code, Clone(f.PutLocked(name, l))
}

func (f *API) watch(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.Lock()
	if f.Forbidden["watch"] || name == "" {
		f.mu.Unlock()
		status, answer := Denied("watch", name)
		WriteJSON(w, status, answer)
		return
	}
	from := f.Revision
	var first []Object
	if l, ok := f.Leases[name]; ok {
		first = append(first, Object{"type": "ADDED", "object": Clone(l)})
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
		var news []Object
		for _, e := range f.Events {
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

// Merge applies a JSON merge patch (RFC 7386) to target, which it changes.
func Merge(target any, patch Object) any {
	t, ok := target.(Object)
	if !ok {
		t = Object{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(t, k)
		case Object:
			t[k] = Merge(t[k], v)
		default:
			t[k] = v
		}
	}
	return t
}

// Meta is the metadata of an object, which gets some if it has none.
func Meta(l Object) Object {
	m, ok := l["metadata"].(Object)
	if !ok {
		m = Object{}
		l["metadata"] = m
	}
	return m
}

// Clone is a deep copy.
func Clone(l Object) Object {
	if l == nil {
		return nil
	}
	c := maps.Clone(l)
	for k, v := range c {
		if o, ok := v.(Object); ok {
			c[k] = Clone(o)
		}
	}
	return c
}

// Failure is the answer of an API server that refuses: a code and a Status.
func Failure(code int, reason, kind, name, message string) (int, Object) {
	return code, Object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": Object{"name": name, "group": "coordination.k8s.io", "kind": kind},
	}
}

// NotFound is the answer for a lease that does not exist.
func NotFound(name string) (int, Object) {
	return Failure(404, "NotFound", "leases", name, fmt.Sprintf("leases.coordination.k8s.io %q not found", name))
}

// Denied is the answer for a right that the user does not have.
func Denied(verb, name string) (int, Object) {
	return Failure(403, "Forbidden", "leases", name, fmt.Sprintf(
		`leases.coordination.k8s.io %q is forbidden: User "u" cannot %s resource "leases" in API group "coordination.k8s.io" in the namespace "team-a"`, name, verb))
}

// Invalid is the answer for an object that validation refuses.
func Invalid(name, field, message string) (int, Object) {
	code, status := Failure(422, "Invalid", "Lease", name,
		fmt.Sprintf("Lease.coordination.k8s.io %q is invalid: %s: %s", name, field, message))
	status["details"].(Object)["causes"] = []any{Object{"reason": "FieldValueInvalid", "message": message,
		"field": field}}
	return code, status
}

// WriteJSON answers a request.
func WriteJSON(w http.ResponseWriter, code int, body Object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
