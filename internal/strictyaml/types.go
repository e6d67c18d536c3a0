package strictyaml

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// plain writes s without quotes: `on` is a word in YAML 1.2, and people compare what is printed with what
// they wrote.
func plain(tag, s string) (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}, nil
}

// Switch is `on` or `off`, and is written so. It decodes true and false as well.
type Switch bool

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Switch) UnmarshalText(text []byte) error {
	on, ok := parseSwitch(string(text))
	if !ok {
		return fmt.Errorf("expected %s, found %s", s.Expected(), Quote(string(text)))
	}
	*s = Switch(on)
	return nil
}

// Expected says what is accepted.
func (*Switch) Expected() string { return "on or off" }

// String returns on or off.
func (s Switch) String() string {
	if s {
		return "on"
	}
	return "off"
}

// MarshalYAML implements yaml.Marshaler.
func (s Switch) MarshalYAML() (any, error) { return plain("!!str", s.String()) }

// OnOffDuration is `on`, `off` or a duration above zero. The zero value is off.
type OnOffDuration struct {
	// On says that the value is computed (`on`); For is then zero.
	On bool
	// For is the duration that was written, zero for on and off.
	For time.Duration
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *OnOffDuration) UnmarshalText(text []byte) error {
	if on, ok := parseSwitch(string(text)); ok {
		*o = OnOffDuration{On: on}
		return nil
	}
	d, err := parseDuration(string(text), o.Expected())
	if err == nil && d <= 0 {
		err = fmt.Errorf("is %s: it must be more than 0s, or off", shown(string(text)))
	}
	if err == nil {
		*o = OnOffDuration{For: d}
	}
	return err
}

// Expected says what is accepted.
func (*OnOffDuration) Expected() string { return "on, off or a duration such as 15s" }

// String returns the value as it is written.
func (o OnOffDuration) String() string {
	if o.For != 0 {
		return o.For.String()
	}
	return Switch(o.On).String()
}

// MarshalYAML implements yaml.Marshaler.
func (o OnOffDuration) MarshalYAML() (any, error) { return plain("!!str", o.String()) }

// AutoDuration is a duration, or `auto`: then it is computed.
type AutoDuration time.Duration

// Auto is what `auto` decodes to.
const Auto AutoDuration = -1

const auto = "auto"

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *AutoDuration) UnmarshalText(text []byte) error {
	if string(text) == auto {
		*a = Auto
		return nil
	}
	d, err := parseDuration(string(text), a.Expected())
	if err == nil && AutoDuration(d) == Auto {
		err = fmt.Errorf("is %v: it must not be negative", d)
	}
	if err == nil {
		*a = AutoDuration(d)
	}
	return err
}

// Expected says what is accepted.
func (*AutoDuration) Expected() string { return "auto or " + expectedDuration }

// String returns the value as it is written.
func (a AutoDuration) String() string {
	if a == Auto {
		return auto
	}
	return time.Duration(a).String()
}

// MarshalYAML implements yaml.Marshaler.
func (a AutoDuration) MarshalYAML() (any, error) { return plain("!!str", a.String()) }

// OnOffFraction is `on` (0), `off` (1) or a number from 0 to 1: a threshold that always, never or sometimes
// applies.
type OnOffFraction float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *OnOffFraction) UnmarshalText(text []byte) error {
	if on, ok := parseSwitch(string(text)); ok {
		*o = 1
		if on {
			*o = 0
		}
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		return fmt.Errorf("expected %s, found %s", o.Expected(), Quote(string(text)))
	}
	*o = OnOffFraction(f)
	return nil
}

// Expected says what is accepted.
func (*OnOffFraction) Expected() string { return "on, off or a number from 0 to 1" }

// String returns the value as it is written.
func (o OnOffFraction) String() string {
	switch o {
	case 0:
		return "on"
	case 1:
		return "off"
	default:
		return strconv.FormatFloat(float64(o), 'g', -1, 64)
	}
}

// MarshalYAML implements yaml.Marshaler.
func (o OnOffFraction) MarshalYAML() (any, error) {
	if o == 0 || o == 1 {
		return plain("!!str", o.String())
	}
	return plain("!!float", o.String())
}

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
