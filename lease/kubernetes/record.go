package kubernetes

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Annotation is the key under which a lease carries what its spec has no field for.
const Annotation = "serf-sbr.github.io/record"

const (
	recordFormat = 1
	// compressAbove keeps the record of a cluster of up to about two hundred members readable.
	compressAbove = 8 << 10
	// maxRecord leaves the annotations of others room in the 256 KiB that the server allows for all of them.
	maxRecord = 200 << 10
	// maxPlain bounds what a reader unpacks: a few hundred bytes of gzip can stand for megabytes.
	maxPlain = 8 << 20
)

// payload is the JSON in the annotation. Fields may be added; a change of meaning needs a new format.
type payload struct {
	Format int    `json:"v"`
	Token  uint64 `json:"token"`
	// Holder is spec.holderIdentity once more. If the two differ then somebody else has changed the holder.
	Holder string `json:"holder,omitempty"`
	Nonce  string `json:"nonce,omitempty"`
	TTL    string `json:"ttl,omitempty"`
	// Write makes each write differ from the one before: a write without a change would not move the resourceVersion, and two
	// writers could both believe that theirs took place.
	Write   string       `json:"write,omitempty"`
	Verdict *sbr.Verdict `json:"verdict,omitempty"`
	// Time is spec.time of a custom resource once more: if it differs then somebody else has written. Acquired and Renewed are the
	// times that such a spec has no field for, or not the precision. A native lease has none of the three.
	Time     *int64     `json:"time,omitempty"`
	Acquired *time.Time `json:"acquired,omitempty"`
	Renewed  *time.Time `json:"renewed,omitempty"`
}

// encode returns the annotation's value for a native lease.
func encode(r lease.Record) (string, error) {
	p, err := payloadOf(r)
	if err != nil {
		return "", err
	}
	return p.pack()
}

func payloadOf(r lease.Record) (payload, error) {
	if err := r.Validate(); err != nil {
		return payload{}, err
	}
	p := payload{Format: recordFormat, Token: r.Token, Holder: r.Holder, Nonce: r.Nonce, Write: rand.Text()[:13], Verdict: r.Verdict}
	if r.TTL > 0 {
		p.TTL = r.TTL.String()
	}
	return p, nil
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
		return "", fmt.Errorf("%w: %d bytes, %d in the annotation, which may have %d: list fewer members in the verdict",
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

// decode reads the annotation's value.
func decode(value string) (payload, time.Duration, error) {
	plain := []byte(value)
	if !strings.HasPrefix(value, "{") {
		var err error
		if plain, err = decompress(value); err != nil {
			return payload{}, 0, err
		}
	}
	// The format first: a newer one may have other types in the same fields.
	var head struct {
		Format int `json:"v"`
	}
	if err := json.Unmarshal(plain, &head); err != nil {
		return payload{}, 0, err
	}
	switch {
	case head.Format > recordFormat:
		return payload{}, 0, fmt.Errorf("format %d is newer than this program, which knows %d: upgrade it", head.Format, recordFormat)
	case head.Format < recordFormat:
		return payload{}, 0, fmt.Errorf("format %d is unknown", head.Format)
	}
	var p payload
	if err := json.Unmarshal(plain, &p); err != nil {
		return payload{}, 0, err
	}
	if p.Verdict != nil {
		p.Verdict.Normalize() // a hand may have edited it, and look-ups need order
	}
	if p.TTL == "" {
		return p, 0, nil
	}
	ttl, err := time.ParseDuration(p.TTL)
	if err == nil && ttl < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return payload{}, 0, fmt.Errorf("ttl %q: %w", p.TTL, err)
	}
	return p, ttl, nil
}
