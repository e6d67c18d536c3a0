package kubernetes

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Annotation is the key under which a lease carries what its spec has no field for.
const Annotation = "serf-sbr.github.io/record"

const (
	// recordFormat is what all versions read, movedFormat that of a lease that has moved, which earlier
	// versions must not take for theirs.
	recordFormat = 1
	movedFormat  = 2
	// compressAbove keeps the record of a cluster of up to about two hundred members readable.
	compressAbove = 8 << 10
	// maxRecord leaves the annotations of others room in the 256 KiB that the server allows for all of them.
	maxRecord = 200 << 10
	// maxPlain bounds what a reader unpacks: a few hundred bytes of gzip can stand for megabytes.
	maxPlain = 8 << 20
)

// payload is the JSON in the annotation. Fields may be added; a change of meaning needs a new format.
type payload struct {
	Format int `json:"v"`
	// Document repeats spec.holderIdentity as its holder: if the two differ then another program has changed
	// it. A native lease has the times in its spec alone; a custom resource has no field for them there, or
	// not the precision.
	lease.Document
	// Time is spec.time of a custom resource once more: if it differs then another program has written.
	Time *int64 `json:"time,omitempty"`
}

// encode returns the annotation's value for a native lease.
func encode(r lease.Record) (string, error) {
	p, err := payloadOf(r)
	if err != nil {
		return "", err
	}
	p.Acquired, p.Renewed = time.Time{}, time.Time{}
	return p.pack()
}

func payloadOf(r lease.Record) (payload, error) {
	r.Acquired, r.Renewed = writable(r.Acquired), writable(r.Renewed)
	d, err := lease.NewDocument(r)
	p := payload{Format: recordFormat, Document: d}
	if r.Moved.Away() {
		p.Format = movedFormat
	}
	return p, err
}

// pack returns the annotation's value.
func (p payload) pack() (string, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	value := string(plain)
	if compressAbove < len(plain) && len(plain) <= maxPlain {
		if value, err = compress(plain); err != nil {
			return "", err
		}
	}
	if room := maxRecord - len(Annotation); len(value) > room {
		return "",
			fmt.Errorf("%w: %d bytes, %d in the annotation, which may have %d: list fewer members in the verdict",
				lease.ErrTooLarge, len(plain), len(value), room)
	}
	return value, nil
}

func compress(plain []byte) (string, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(plain); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

func decompress(value string) ([]byte, error) {
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(value)))
	if err != nil {
		return nil, fmt.Errorf("neither JSON nor gzip in base64: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxPlain+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("more than %d bytes when unpacked", maxPlain)
	}
	return plain, nil
}

// decode reads the annotation's value: the record in it, and the time that a custom resource had then, nil
// for a native one.
func decode(value string) (r lease.Record, at *int64, err error) {
	plain := []byte(value)
	if !strings.HasPrefix(value, "{") {
		if plain, err = decompress(value); err != nil {
			return r, nil, err
		}
	}
	// The format first: a newer one may have other types in the same fields.
	var head struct {
		Format int `json:"v"`
	}
	if err := json.Unmarshal(plain, &head); err != nil {
		return r, nil, err
	}
	switch {
	case head.Format > movedFormat:
		return r, nil, fmt.Errorf("format %d is newer than this program, which knows %d: upgrade it", head.Format,
			movedFormat)
	case head.Format < recordFormat:
		return r, nil, fmt.Errorf("format %d is unknown", head.Format)
	}
	var p payload
	if err := json.Unmarshal(plain, &p); err != nil {
		return r, nil, err
	}
	r, err = p.Record()
	return r, p.Time, err
}
