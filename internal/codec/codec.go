// Package codec writes small messages as bytes, and reads them strictly. What is on the wire is said once, by
// a function that is called to write and to read: so what is read is exactly what is written.
package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// Coder writes a message, or reads one. It changes nothing of what it writes.
type Coder struct {
	b     []byte
	reads bool
	bad   string // the first thing that was wrong with what is read
}

// Append appends what code says.
func Append(b []byte, code func(*Coder)) []byte {
	c := Coder{b: b}
	code(&c)
	return c.b
}

// Read has code read what Append has written by it. Anything else is an error.
func Read(b []byte, code func(*Coder)) error {
	c := Coder{b: b, reads: true}
	code(&c)
	c.Check(len(c.b) == 0, "too long")
	if c.bad == "" {
		c.Check(bytes.Equal(Append(make([]byte, 0, len(b)), code), b), "not as it would be written")
	}
	if c.bad != "" {
		return errors.New(c.bad)
	}
	return nil
}

// Reads reports whether the message is read.
func (c *Coder) Reads() bool { return c.reads }

// Check says what is wrong with what is read, unless ok. Nothing more is read then.
func (c *Coder) Check(ok bool, why string) {
	if !c.reads || ok {
		return
	}
	if c.bad == "" {
		c.bad = why
	}
	c.b = nil
}

// took goes on after n bytes, where they were good.
func (c *Coder) took(n int) (ok bool) {
	if n <= 0 || n > len(c.b) {
		c.Check(false, "cut off")
		return false
	}
	c.b = c.b[n:]
	return true
}

// Number codes a number; a larger one than limit is not read.
func Number[T ~int | ~int64 | ~uint8 | ~uint64](c *Coder, v *T, limit uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.b)
	c.Check(n <= limit, "a number is too large")
	if c.took(size) {
		*v = T(n)
	}
}

// Signed codes a number that may be negative.
func (c *Coder) Signed(v *int64) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, *v)
		return
	}
	if n, size := binary.Varint(c.b); c.took(size) {
		*v = n
	}
}

// After codes a number by its distance from an earlier one.
func (c *Coder) After(prev uint64, v *uint64) {
	d := int64(*v - prev)
	c.Signed(&d)
	c.Check(prev+uint64(d) <= math.MaxInt64, "a number is too large")
	if c.reads && c.bad == "" {
		*v = prev + uint64(d)
	}
}

// Index codes a place in a list of at most limit, after prev.
func (c *Coder) Index(prev int, v *int, limit int) {
	d := *v - prev - 1
	Number(c, &d, uint64(limit))
	c.Check(prev+1+d < limit, "out of range")
	if c.reads && c.bad == "" {
		*v = prev + 1 + d
	}
}

// Small codes a byte, from least to most.
func Small[T ~uint8](c *Coder, v *T, least, most T) {
	switch {
	case !c.reads:
		c.b = append(c.b, byte(*v))
	case len(c.b) == 0 || T(c.b[0]) < least || T(c.b[0]) > most:
		c.Check(false, "cut off, or an unknown value")
	default:
		*v, c.b = T(c.b[0]), c.b[1:]
	}
}

// Flags codes flags in one byte, the first in its lowest bit.
func (c *Coder) Flags(all ...*bool) {
	var bits byte
	for i, f := range all {
		if *f {
			bits |= 1 << i
		}
	}
	Small(c, &bits, 0, 1<<len(all)-1)
	for i, f := range all {
		if c.reads {
			*f = bits&(1<<i) != 0
		}
	}
}

// Fixed codes as many bytes as v has.
func (c *Coder) Fixed(v []byte) {
	if !c.reads {
		c.b = append(c.b, v...)
	} else if all := c.b; c.took(len(v)) {
		copy(v, all)
	}
}

// Uint64 codes a number as eight bytes.
func Uint64[T ~uint64](c *Coder, v *T) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(*v))
	c.Fixed(b[:])
	if c.reads {
		*v = T(binary.BigEndian.Uint64(b[:]))
	}
}

// Bytes codes n bytes.
func Bytes[T ~string | ~[]byte](c *Coder, v *T, n int) {
	if !c.reads {
		c.b = append(c.b, *v...)
	} else if all := c.b; n > 0 && c.took(n) {
		*v = T(bytes.Clone(all[:n]))
	}
}

// Rest codes all bytes that are left, at most limit.
func Rest[T ~string | ~[]byte](c *Coder, v *T, limit int) {
	c.Check(len(c.b) <= limit, "too long")
	Bytes(c, v, len(c.b))
}

// List codes the length of a list and each of its items, which is given the one before. Every item has one
// byte at least.
func List[T any](c *Coder, l *[]T, before T, item func(prev T, x *T)) {
	n := len(*l)
	Number(c, &n, uint64(len(c.b)))
	if c.reads && n > 0 && c.bad == "" {
		*l = make([]T, n)
	}
	for i := range *l {
		item(before, &(*l)[i])
		before = (*l)[i]
	}
}
