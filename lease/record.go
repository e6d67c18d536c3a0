package lease

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The codec of a record, for all stores that keep text. A store that has columns of its own for some fields
// embeds Document in a form of its own; other stores keep the text of MarshalRecord.

// Document is a record as JSON.
type Document struct {
	// Write names this write: two writes of equal content are two contents, and so two versions.
	Write    string       `json:"write,omitempty"`
	Holder   string       `json:"holder"`
	Token    uint64       `json:"token"`
	Nonce    string       `json:"nonce,omitempty"`
	TTL      string       `json:"ttl,omitempty"`
	Acquired time.Time    `json:"acquired,omitzero"`
	Renewed  time.Time    `json:"renewed,omitzero"`
	Verdict  *sbr.Verdict `json:"verdict,omitempty"`
	Moved    Moved        `json:"moved,omitzero"`
}

// NewDocument returns the form in which r is kept. A value that text would change is an error.
func NewDocument(r Record) (Document, error) {
	if err := r.Validate(); err != nil {
		return Document{}, err
	}
	d := Document{
		Write: rand.Text(), Holder: r.Holder, Token: r.Token, Nonce: r.Nonce,
		Acquired: r.Acquired.UTC(), Renewed: r.Renewed.UTC(), Verdict: r.Verdict, Moved: r.Moved,
	}
	if r.TTL > 0 {
		d.TTL = r.TTL.String()
	}
	return d, nil
}

// Record returns the record, whatever wrote the document.
func (d *Document) Record() (Record, error) {
	r := Record{
		Holder: d.Holder, Token: d.Token, Nonce: d.Nonce,
		Acquired: d.Acquired.UTC(), Renewed: d.Renewed.UTC(), Verdict: d.Verdict, Moved: d.Moved,
	}
	if r.Verdict != nil {
		r.Verdict.Normalize() // a hand may have edited it, and look-ups need order
	}
	if d.TTL == "" {
		return r, nil
	}
	var err error
	if r.TTL, err = time.ParseDuration(d.TTL); err == nil && r.TTL < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return Record{}, fmt.Errorf("ttl %q: %w", d.TTL, err)
	}
	return r, nil
}

// recordFormat is the newest format. Format 2 has left and heirs in the verdict, format 3 a lease that has
// moved, which members of earlier versions must not take for theirs. A record without these is written in
// format 1, which all read.
const recordFormat = 3

// ErrNewerFormat is wrapped by UnmarshalRecord when the record is in a format of a later version of this
// program.
var ErrNewerFormat = errors.New("written by a newer version of this program")

// MarshalRecord returns the whole record as one JSON object in one line.
func MarshalRecord(r Record) ([]byte, error) {
	d, err := NewDocument(r)
	if err != nil {
		return nil, err
	}
	whole := struct {
		Format int `json:"format"`
		Document
	}{1, d}
	if v := r.Verdict; v != nil && len(v.Left)+len(v.Heirs) > 0 {
		whole.Format = 2
	}
	if r.Moved.Away() {
		whole.Format = 3
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err = e.Encode(whole)
	return text.Bytes(), err
}

// UnmarshalRecord reads what MarshalRecord wrote. It is strict where encoding/json is not: no field twice,
// none unknown, none that must be there missing or null. In a record that a hand has edited, a misspelt
// "holder" would else pass for a lease that is free. So a new field needs a new format, too.
func UnmarshalRecord(text []byte) (Record, error) {
	if !utf8.Valid(text) {
		return Record{}, errors.New("not valid UTF-8")
	}
	fields, err := splitFields(text)
	if err != nil {
		return Record{}, err
	}
	if err := checkFormat(fields["format"]); err != nil {
		return Record{}, err
	}
	delete(fields, "format")
	for _, name := range []string{"holder", "token"} { // their absence would be read as "free" or "never held"
		if _, there := fields[name]; !there {
			return Record{}, fmt.Errorf("the field %q is missing", name)
		}
	}
	var d Document
	into := map[string]any{
		"write": &d.Write, "holder": &d.Holder, "token": &d.Token, "nonce": &d.Nonce, "ttl": &d.TTL,
		"acquired": &d.Acquired, "renewed": &d.Renewed, "verdict": &d.Verdict, "moved": &d.Moved,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if into[name] == nil {
			return Record{}, fmt.Errorf("the field %q is unknown", name)
		}
		if err := strictly(fields[name], into[name]); err != nil {
			return Record{}, fmt.Errorf("the field %q: %w", name, err)
		}
	}
	return d.Record()
}

// checkFormat comes first: a newer format may have other fields, and other types in the same ones.
func checkFormat(raw json.RawMessage) error {
	if raw == nil {
		return errors.New(`the field "format" is missing: is it the record of a lease?`)
	}
	var format int
	if err := strictly(raw, &format); err != nil {
		return fmt.Errorf(`the field "format": %w`, err)
	}
	switch {
	case format > recordFormat:
		return fmt.Errorf("%w: format %d, and this program knows %d", ErrNewerFormat, format, recordFormat)
	case format < 1:
		return fmt.Errorf("format %d is unknown", format)
	}
	return nil
}

func strictly(raw json.RawMessage, into any) error {
	if string(raw) == "null" {
		return errors.New("it is null")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// splitFields returns the fields of one JSON object.
func splitFields(text []byte) (map[string]json.RawMessage, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line := 1 + strings.Count(string(text[:min(int(syntax.Offset), len(text))]), "\n")
			return nil, fmt.Errorf("not JSON, cut off or damaged in line %d: %w", line, err)
		}
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, errors.New("it does not begin with {")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("the field %q is there twice", name)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, err
		}
		fields[name] = raw
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return fields, nil
}

// spent refuses a token beyond MaxToken, which no store and no fence has to keep: the record was poisoned.
func (r *Record) spent() error {
	if t := highest(r); t > MaxToken {
		return fmt.Errorf("%w: it is %d, and the largest is %d: see sbr lease reset", ErrTokenSpent, t, MaxToken)
	}
	return nil
}

// Validate reports what a store that keeps text would change on the way: a survivor whose name comes back
// different is no survivor. Such a record must be refused (ErrRefused), not written.
func (r *Record) Validate() error {
	if r.TTL < 0 {
		return fmt.Errorf("the time to live is negative: %s", r.TTL)
	}
	if err := r.spent(); err != nil {
		return err
	}
	texts := []string{r.Holder, r.Nonce, r.Moved.To, r.Moved.Store}
	if v := r.Verdict; v != nil {
		texts = append(texts, string(v.DecidedBy), v.Reason)
		for _, ids := range [][]sbr.ID{v.Survivors, v.Down, v.Left, v.Heirs} {
			for _, id := range ids {
				texts = append(texts, string(id))
			}
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not valid UTF-8", text)
		}
	}
	return nil
}
