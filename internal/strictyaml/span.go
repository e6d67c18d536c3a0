package strictyaml

import (
	"errors"
	"math"
	"time"
)

// Span is a duration above zero, or `infinite`.
type Span time.Duration

// Infinite is what `infinite` decodes to.
const Infinite Span = math.MaxInt64

const infinite = "infinite"

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	if string(text) == infinite {
		*s = Infinite
		return nil
	}
	d, err := ParseDuration(string(text))
	if err != nil {
		return errors.New(err.Error() + ", or " + infinite)
	}
	*s = Span(d)
	return nil
}

// Expected says what is accepted.
func (*Span) Expected() string { return expectedDuration + ", or " + infinite }

// String returns the value as it is written.
func (s Span) String() string {
	if s == Infinite {
		return infinite
	}
	return time.Duration(s).String()
}

// MarshalYAML implements yaml.Marshaler.
func (s Span) MarshalYAML() (any, error) { return plain("!!str", s.String()) }
