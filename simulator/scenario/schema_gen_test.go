package scenario

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// object is a piece of a JSON Schema.
type object = map[string]any

// with returns a copy of a piece with more in it.
func with(o object, key string, value any) object {
	o = maps.Clone(o)
	o[key] = value
	return o
}

// What Go's time.ParseDuration reads, and what of it is zero.
const (
	units     = `(ns|us|µs|μs|ms|s|m|h)`
	spans     = `(([0-9]+(\.[0-9]*)?|\.[0-9]+)` + units + `)+`
	zeros     = `((0+(\.0*)?|\.0+)` + units + `)+`
	anySpan   = `^[-+]?(0|` + spans + `)$`
	noNegSpan = `^(\+?(0|` + spans + `)|-(0|` + zeros + `))$`
	posSpan   = `^\+?` + spans + `$`
	rest      = `(\.\.\+?` + spans + `)?` // of a range
	anyTime   = `^(\+?(0|` + spans + `)|-(0|` + zeros + `))` + rest + `$`
	posTime   = `^\+?` + spans + rest + `$`
	noTime    = `^\+?` + zeros + rest + `$`
)

// A bare 0 is a duration as well; no other number is.
func span(pattern string) object {
	return object{"type": []any{"string", "integer"}, "pattern": pattern, "minimum": 0, "maximum": 0}
}

func positiveSpan() object {
	return object{"type": "string", "pattern": posSpan, "not": object{"pattern": `^\+?` + zeros + `$`}}
}

// switches are the words for on and off; YAML has two of them as booleans.
var switches = []any{"on", "off", true, false, "true", "false"}

// memberName is what checker.name takes; nobody may be called none.
func memberName(what object) object {
	what = with(what, "pattern", `^[A-Za-z0-9._-]{1,128}$`)
	what["type"] = "string"
	return with(what, "not", object{"const": none})
}

// words accepts some words whatever their case, and offers them as they are written.
func words(known []string) object {
	var ways []string
	for _, w := range known {
		var b strings.Builder
		for _, r := range w {
			if unicode.IsLetter(r) {
				b.WriteString("[" + string(unicode.ToUpper(r)) + string(r) + "]")
			} else {
				b.WriteRune(r)
			}
		}
		ways = append(ways, b.String())
	}
	return object{"type": "string", "anyOf": []object{{"enum": known},
		{"pattern": "^(" + strings.Join(ways, "|") + ")$"}}}
}

// generator makes the schema of the types. A place is a key path without indexes, such as steps.at.
type generator struct {
	t     *testing.T
	texts map[string]string
	used  map[string]bool
}

// optional also accepts an empty value, which is as if the key were not there.
func optional(o object) object {
	switch kind := o["type"].(type) {
	case string:
		o = with(o, "type", []any{kind, "null"})
	case []any:
		o = with(o, "type", append(slices.Clone(kind), "null"))
	}
	if enum, ok := o["enum"].([]any); ok {
		o = with(o, "enum", append(slices.Clone(enum), nil))
	}
	// not those of a clock, which are about keys
	if ways, ok := o["anyOf"].([]object); ok && o["required"] == nil {
		o = with(o, "anyOf", append(slices.Clone(ways), object{"type": "null"}))
	}
	return o
}

// of is the schema of a type at a place.
func (g *generator) of(t reflect.Type, at string) object {
	if t.Kind() == reflect.Pointer {
		return optional(g.of(t.Elem(), at))
	}
	if special, ok := g.special(at); ok {
		return special
	}
	switch reflect.New(t).Interface().(type) {
	case *time.Duration:
		return span(noNegSpan)
	case *Time:
		return span(anyTime)
	case *strictyaml.Switch, *bool:
		return object{"enum": switches}
	case *strictyaml.Span:
		s := positiveSpan()
		s["anyOf"] = []object{{"const": "infinite"}, {"pattern": s["pattern"], "not": s["not"]}}
		delete(s, "pattern")
		delete(s, "not")
		return s
	case *strictyaml.AutoDuration:
		return object{"anyOf": []object{{"const": "auto"}, span(noNegSpan)}}
	case *strictyaml.OnOffDuration:
		return object{"anyOf": []object{{"enum": switches}, positiveSpan()}}
	case *strictyaml.OnOffFraction:
		return object{"anyOf": []object{
			{"enum": switches}, {"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": `^[-+]?[0-9.][0-9a-fA-FxXpP+._-]*$`},
		}}
	case *Nodes:
		list := g.of(reflect.TypeFor[[]Node](), at)
		return object{"anyOf": []object{{"type": "integer", "minimum": 1, "maximum": maxNodes},
			with(with(list, "minItems", 1), "type", "array")}}
	case *StoreFault:
		change := with(g.of(reflect.TypeFor[StoreChange](), at), "minProperties", 1)
		change["type"], change["maxProperties"] = "object", 1
		return object{"anyOf": []object{{"enum": faultKinds}, change}}
	case *Detection:
		return object{"anyOf": []object{{"enum": profiles()},
			with(g.of(reflect.TypeFor[DetectionTimes](), at), "type", "object"), {"const": ""}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.structure(t, at)
	case reflect.Map:
		return object{"type": []any{"object", "null"}, "additionalProperties": g.of(t.Elem(), at)}
	case reflect.Slice:
		return object{"type": []any{"array", "null"}, "items": g.of(t.Elem(), at)}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	g.t.Fatalf("%s: no schema for %s", at, t)
	return nil
}

// structure is an object whose keys are those of the fields, none else.
func (g *generator) structure(t reflect.Type, at string) object {
	keys := make(object)
	g.fields(t, at, keys)
	o := object{"type": []any{"object", "null"}, "properties": keys, "additionalProperties": false}
	if extra, ok := g.whole(at, o); ok {
		return extra
	}
	return o
}

func (g *generator) fields(t reflect.Type, at string, keys object) {
	for f := range t.Fields() {
		key, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case rest == "inline":
			g.fields(f.Type, at, keys)
			continue
		case !f.IsExported() || key == "-":
			continue
		}
		place := strings.TrimPrefix(at+"."+key, ".")
		keys[key] = with(g.of(f.Type, place), "description", g.text(place))
	}
}

// ownTime is a time of a lease in the block of a store.
var ownTime = regexp.MustCompile(`\.lease\.(?:` + strings.Join(config.Implementations(), "|") +
	`)\.(heartbeat-.*|lease-operation-.*)$`)

// text is what the documentation says of a key. What an implementation of the lease overrides is said once.
func (g *generator) text(place string) string {
	for _, p := range []string{place, ownTime.ReplaceAllString(place, ".lease.$1")} {
		if text := g.texts[p]; text != "" {
			g.used[p] = true
			return text
		}
	}
	g.t.Errorf("%s is not documented", place)
	return ""
}

// special are the places whose type does not say all.
func (g *generator) special(at string) (object, bool) {
	list := func(min int) object {
		return object{"type": "array", "items": memberName(object{}), "minItems": min, "uniqueItems": true}
	}
	switch ownTime.ReplaceAllString(at, ".lease.$1") {
	case "steps.for":
		return object{"type": "string", "pattern": posTime, "not": object{"pattern": noTime}}, true
	case "run-for", "cluster.reap-after", "steps.lease-store.slow",
		"cluster.split-brain-resolver.lease-majority.suspend-timeout",
		"cluster.lease.heartbeat-interval", "cluster.lease.lease-operation-timeout":
		return positiveSpan(), true
	case "steps.clock.skew":
		return span(anySpan), true
	case "steps.clock.rate":
		return object{"type": "number", "minimum": 0.01, "maximum": 100}, true
	case "cluster.network.loss", "steps.loss":
		return object{"type": "number", "minimum": 0, "maximum": 1}, true
	case "steps.state":
		return object{"enum": []any{stateLost}}, true
	case "steps.rights":
		return object{"enum": []any{none}}, true
	case "cluster.split-brain-resolver.active-strategy":
		return words(strategies.Keys()), true
	case "cluster.split-brain-resolver.lease-majority.lease-implementation":
		return object{"enum": config.Implementations()}, true
	case "cluster.split-brain-resolver.lease-majority.when-lease-unknown":
		return object{"enum": []any{"down", "suspend"}}, true
	case "cluster.lease.kubernetes.api":
		return object{"enum": []any{"", "native", "akka", "pekko"}}, true
	case "cluster.hooks.signal":
		return object{"enum": config.Signals()}, true
	case "cluster.split-brain-resolver.min-members":
		return object{"type": "integer", "minimum": 1}, true
	case "cluster.split-brain-resolver.probe.tries", "cluster.split-brain-resolver.probe.neighbours":
		return object{"type": "integer", "minimum": 0}, true
	case "cluster.nodes.name", "steps.crash", "steps.restart", "steps.as", "steps.leave", "steps.down",
		"steps.by", "steps.join", "steps.pause",
		"steps.clock.node":
		return memberName(object{}), true
	case "cluster.nodes.zone":
		return object{"type": "string", "pattern": `^[A-Za-z0-9._-]{0,128}$`, "not": object{"const": none}}, true
	case "steps.heal":
		return object{"enum": []any{true, "on", "true"}}, true
	case "steps.partition":
		return object{"type": "array", "minItems": 1, "items": list(1)}, true
	case "steps.cut", "steps.cut-one-way", "steps.link", "steps.link-one-way":
		return with(list(2), "maxItems", 2), true
	case "steps.nodes", "steps.force-leave", "steps.on":
		return list(1), true
	case "expect.survivors", "expect.down":
		return list(0), true
	case "expect.survivors-one-of":
		return object{"type": "array", "minItems": 1, "items": optional(list(0))}, true
	case "expect.survivor-count":
		return object{"type": "integer", "minimum": 0, "maximum": maxNodes}, true
	case "expect.lease-holder":
		return object{"type": "string", "pattern": `^[A-Za-z0-9._-]{1,128}$`}, true
	case "cluster.settings":
		rules := object{"$ref": "#/properties/cluster/properties/split-brain-resolver"}
		return object{"type": []any{"object", "null"}, "additionalProperties": rules,
			"propertyNames": memberName(object{})}, true
	case "cluster.singletons":
		item := with(g.structure(reflect.TypeFor[Singleton](), at), "required", []string{"name"})
		item["type"] = "object"
		return object{"type": []any{"array", "null"}, "items": item, "maxItems": maxSingletons}, true
	case "cluster.singletons.name":
		return object{"type": "string", "pattern": singletonName.String()}, true
	case "cluster.singletons.number-of-retries":
		return object{"type": "integer", "minimum": 0, "maximum": maxRetries}, true
	case "cluster.shards":
		item := with(g.structure(reflect.TypeFor[Shards](), at), "required", []string{"type"})
		item["type"] = "object"
		return object{"type": []any{"array", "null"}, "items": item, "maxItems": maxTypes}, true
	case "cluster.shards.type":
		return object{"type": "string", "pattern": shardsType.String()}, true
	case "cluster.shards.count":
		return object{"type": "integer", "minimum": 0, "maximum": maxShards}, true
	case "cluster.shards.number-of-retries":
		return object{"type": "integer", "minimum": 0, "maximum": maxRetries}, true
	case "expect.shards":
		return object{"type": []any{"object", "null"}, "additionalProperties": optional(list(0)),
			"propertyNames": object{"pattern": shardsType.String()}}, true
	case "expect.singletons":
		names := object{"type": "string", "pattern": `^[A-Za-z0-9._-]{1,128}$`}
		return object{"type": []any{"object", "null"}, "additionalProperties": names,
			"propertyNames": object{"pattern": singletonName.String()}}, true
	case "expect.decisions":
		return object{"type": []any{"object", "null"}, "additionalProperties": words(kinds()),
			"propertyNames": memberName(object{})}, true
	}
	return nil, false
}

// whole are the objects whose keys depend on each other.
func (g *generator) whole(at string, o object) (object, bool) {
	set := func(keys ...string) object {
		var required []string
		not := make(object)
		for _, k := range keys {
			required, not[k] = append(required, k), object{"not": object{"type": "null"}}
		}
		return object{"required": required, "properties": not}
	}
	switch at {
	case "":
		o["required"] = []string{"run-for"}
		o["properties"].(object)["steps"].(object)["maxItems"] = maxSteps
	case "cluster.nodes":
		o["required"] = []string{"name"}
	case "steps.clock":
		o["required"], o["anyOf"] = []string{"node"}, []object{set("skew"), set("rate")}
	case "steps":
		at := o["properties"].(object)["at"].(object)
		at["type"] = []any{"string", "integer"} // it may not be empty
		o["required"], o["oneOf"] = []string{"at"}, stepActions(set)
	default:
		return nil, false
	}
	o["type"] = "object" // it may not be empty
	return o, true
}

// companions are the keys that belong to some actions only.
var companions = map[string][]string{
	"for": {"pause", "lease-store", "rights"}, "nodes": {"lease-store", "rights"}, "on": {"force-leave"}, "by": {"down"}, "as": {"restart"}, "state": {"restart"},
	"loss": {"link", "link-one-way"}, "latency": {"link", "link-one-way"},
}

// stepActions are the ways to fill a step: one action, and what belongs to it.
func stepActions(set func(keys ...string) object) (ways []object) {
	for f := range reflect.TypeFor[Step]().Fields() {
		key := f.Tag.Get("yaml")
		if key == "at" || companions[key] != nil {
			continue
		}
		way := set(key)
		switch key {
		case "pause":
			way = set(key, "for")
		case "down":
			way = set(key, "by")
		case "link", "link-one-way":
			way = with(way, "anyOf", []object{set("loss"), set("latency")})
		}
		for companion, of := range companions {
			if !slices.Contains(of, key) {
				way["properties"].(object)[companion] = object{"type": "null"}
			}
		}
		ways = append(ways, with(way, "title", key))
	}
	return ways
}

// makeSchema is the schema as the file holds it.
func makeSchema(t *testing.T) []byte {
	t.Helper()
	g := generator{t: t, texts: schemaTexts(), used: make(map[string]bool)}
	root := g.of(reflect.TypeFor[Scenario](), "")
	root["title"] = "Scenario of sbr simulate"
	root["description"] = "A cluster, what happens to it, and what is expected of it at the end. Durations are written as Go writes them, such as 20s or 1m30s."
	for place := range scenarioTexts {
		require.True(t, g.used[place], "%s is documented, and no such key exists", place)
	}
	return written(t, root)
}

// makeConfigSchema is the schema of sbr.yaml. Its blocks stand in a scenario under cluster, and so do the
// places here.
func makeConfigSchema(t *testing.T) []byte {
	t.Helper()
	g := generator{t: t, texts: configTexts(), used: make(map[string]bool)}
	root := g.of(reflect.TypeFor[config.File](), "cluster")
	root["title"] = "Configuration of sbr"
	root["description"] = "sbr.yaml, the same on all members. Durations are written as Go writes them, such as 20s or 1m30s."
	root["required"] = []string{"system"}
	return written(t, root)
}

func written(t *testing.T, root object) []byte {
	t.Helper()
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(root))
	return out.Bytes()
}
