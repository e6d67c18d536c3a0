package file

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

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	// recordFormat is the newest format. Format 2 has left and heirs in the verdict; a record without them is written in format 1, which
	// members of earlier versions read.
	recordFormat = 2
	// MaxSize is the largest record in bytes, written or read: verdicts that name about twenty thousand members.
	MaxSize = 1 << 20
)

// document is the JSON in the file. A reader takes no field that it does not know: in a record that a hand has edited, a misspelt
// "holder" would else pass for a lease that is free. So a new field needs a new format, too.
type document struct {
	Format int `json:"format"`
	// Write names this write: two writes of equal content are two contents.
	Write    string       `json:"write"`
	Holder   string       `json:"holder"`
	Token    uint64       `json:"token"`
	Nonce    string       `json:"nonce,omitempty"`
	TTL      string       `json:"ttl,omitempty"`
	Acquired time.Time    `json:"acquired,omitzero"`
	Renewed  time.Time    `json:"renewed,omitzero"`
	Verdict  *sbr.Verdict `json:"verdict,omitempty"`
}

// required are the fields whose absence would be read as "free" or "never held".
var required = []string{"format", "holder", "token"}

// encode returns the content of the file.
func encode(r lease.Record) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	d := document{
		Format: 1, Write: rand.Text(), Holder: r.Holder, Token: r.Token, Nonce: r.Nonce,
		Acquired: r.Acquired.UTC(), Renewed: r.Renewed.UTC(), Verdict: r.Verdict,
	}
	if v := r.Verdict; v != nil && len(v.Left)+len(v.Heirs) > 0 {
		d.Format = 2
	}
	if r.TTL > 0 {
		d.TTL = r.TTL.String()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	if text.Len() > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d: list fewer members in the verdict", lease.ErrTooLarge, text.Len(), MaxSize)
	}
	return text.Bytes(), nil
}

// decode reads the content of a file that exists, whoever wrote it. Every error wraps ErrBadRecord.
func decode(text []byte) (lease.Record, error) {
	d, err := parse(text)
	if err != nil {
		return lease.Record{}, fmt.Errorf("%w: %w", ErrBadRecord, brief(err))
	}
	r := lease.Record{
		Holder: d.Holder, Token: d.Token, Nonce: d.Nonce,
		Acquired: d.Acquired.UTC(), Renewed: d.Renewed.UTC(), Verdict: d.Verdict,
	}
	if r.Verdict != nil {
		r.Verdict.Normalize() // a hand may have edited it, and look-ups need order
	}
	if d.TTL != "" {
		if r.TTL, err = time.ParseDuration(d.TTL); err == nil && r.TTL < 0 {
			err = errors.New("it is negative")
		}
		if err != nil {
			return lease.Record{}, fmt.Errorf("%w: %w", ErrBadRecord, brief(fmt.Errorf("ttl %q: %w", d.TTL, err)))
		}
	}
	return r, nil
}

// brief keeps an error that quotes the file from being as long as the file.
func brief(err error) error {
	const longest = 300
	if text := err.Error(); len(text) > longest {
		return errors.New(strings.ToValidUTF8(text[:longest], "") + "…")
	}
	return err
}

// parse is strict where encoding/json is not: no field twice, none unknown, none that must be there missing or null.
func parse(text []byte) (document, error) {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return document{}, errors.New("the file is empty")
	case len(text) > MaxSize:
		return document{}, fmt.Errorf("more than %d bytes", MaxSize)
	case !utf8.Valid(text):
		return document{}, errors.New("not valid UTF-8")
	}
	fields, err := split(text)
	if err != nil {
		return document{}, err
	}
	// The format first: a newer one may have other fields, and other types in the same ones.
	var d document
	if err := d.parseFormat(fields["format"]); err != nil {
		return document{}, err
	}
	for _, name := range required {
		if _, there := fields[name]; !there {
			return document{}, fmt.Errorf("the field %q is missing", name)
		}
	}
	into := map[string]any{
		"format": &d.Format, "write": &d.Write, "holder": &d.Holder, "token": &d.Token, "nonce": &d.Nonce, "ttl": &d.TTL,
		"acquired": &d.Acquired, "renewed": &d.Renewed, "verdict": &d.Verdict,
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if into[name] == nil {
			return document{}, fmt.Errorf("the field %q is unknown", name)
		}
		if err := parseField(fields[name], into[name]); err != nil {
			return document{}, fmt.Errorf("the field %q: %w", name, err)
		}
	}
	return d, nil
}

func (d *document) parseFormat(raw json.RawMessage) error {
	if raw == nil {
		return errors.New(`the field "format" is missing: is it the record of a lease?`)
	}
	if err := parseField(raw, &d.Format); err != nil {
		return fmt.Errorf(`the field "format": %w`, err)
	}
	switch {
	case d.Format > recordFormat:
		return fmt.Errorf("%w: format %d, and this program knows %d", errNewer, d.Format, recordFormat)
	case d.Format < 1:
		return fmt.Errorf("format %d is unknown", d.Format)
	}
	return nil
}

func parseField(raw json.RawMessage, into any) error {
	if string(raw) == "null" {
		return errors.New("it is null")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// split returns the fields of one JSON object.
func split(text []byte) (map[string]json.RawMessage, error) {
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
