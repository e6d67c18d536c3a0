package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalar decodes the kinds that are written as one word.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	switch kind := v.Kind(); {
	case v.Type() == durationType:
		d.duration(n, v, path)
	case kind == reflect.String:
		d.str(n, v, path)
	case kind == reflect.Bool:
		d.boolean(n, v, path)
	case v.CanInt():
		i, err := strconv.ParseInt(n.Value, 10, v.Type().Bits())
		if d.number(n, path, "a whole number", "!!int", err) {
			v.SetInt(i)
		}
	case v.CanUint():
		u, err := strconv.ParseUint(n.Value, 10, v.Type().Bits())
		if d.number(n, path, "a whole number of at least 0", "!!int", err) {
			v.SetUint(u)
		}
	case v.CanFloat():
		f, err := strconv.ParseFloat(n.Value, v.Type().Bits())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			err = strconv.ErrRange
		}
		if d.number(n, path, "a number", "!!float", err) {
			v.SetFloat(f)
		}
	default:
		panic("strictyaml: cannot decode into " + v.Type().String()) // a mistake of the program, not of the input
	}
}

// number reports whether n is an unquoted decimal number that was parsed without err, and the mismatch
// otherwise. A leading zero is refused: YAML 1.1 read 010 as eight.
func (d *decoder) number(n *yaml.Node, path, expected, tag string, err error) bool {
	written := n.Kind == yaml.ScalarNode && (n.Tag == tag || n.Tag == "!!int")
	octal := len(n.Value) > 1 && n.Value[0] == '0' && n.Value[1] >= '0' && n.Value[1] <= '9'
	if err == nil && written && !octal {
		return true
	}
	d.mismatch(n, path, expected)
	return false
}

func (d *decoder) str(n *yaml.Node, v reflect.Value, path string) {
	switch {
	case n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp"):
		v.SetString(n.Value)
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		d.fail(n, path, "expected text, found %s: put it in quotes", describe(n))
	default:
		d.mismatch(n, path, "text")
	}
}

func (d *decoder) boolean(n *yaml.Node, v reflect.Value, path string) {
	b, ok := parseSwitch(n.Value)
	if n.Kind != yaml.ScalarNode || !ok {
		d.mismatch(n, path, "on or off")
		return
	}
	v.SetBool(b)
}

func (d *decoder) duration(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.mismatch(n, path, expectedDuration)
		return
	}
	dur, err := ParseDuration(n.Value)
	if err != nil {
		d.fail(n, path, "%s", err)
		return
	}
	v.Set(reflect.ValueOf(dur).Convert(v.Type()))
}

// parseSwitch reads on, off, true and false. YAML 1.1's yes, no, y and n are not taken: nobody agrees on what
// they are.
func parseSwitch(s string) (on, ok bool) {
	switch s {
	case "on", "true":
		return true, true
	case "off", "false":
		return false, true
	default:
		return false, false
	}
}

const expectedDuration = "a duration such as 20s"

// ParseDuration reads a duration as Go writes it. A bare 0 is taken, every other number without a unit is
// refused with a hint.
func ParseDuration(s string) (time.Duration, error) { return parseDuration(s, expectedDuration) }

func parseDuration(s, expected string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("expected %s, found the number %s: a unit is missing, such as %[2]ss",
			expected, shown(s))
	}
	return 0, fmt.Errorf("expected %s, found %s", expected, Quote(s))
}
