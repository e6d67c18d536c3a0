// Package strictyaml reads YAML (and JSON, which is YAML) into Go values and refuses everything it does not
// understand.
//
// A misspelt setting that is silently ignored is worse than a refused one: a resolver that runs with the
// wrong stable-after looks healthy until the day it is needed. So each problem is named with its place: the
// key path, the line, what was expected, and for an unknown key the nearest known one.
//
// # Guarantees
//
//   - An unknown key, a key that is set twice, a value of the wrong type and a second document are errors.
//   - All problems of a readable document are reported at once, one line each, in the order of the document.
//   - Keys that are absent leave what they would set as it was, so defaults are simply there before decoding.
//     A map holds the keys of the document and no others; a key that was in it before decoding starts with
//     its old value.
//   - It never panics on any input, and the work and memory are bounded: size, number of values, depth.
//   - Nothing is ever expanded: aliases, merge keys and explicit tags are refused.
//
// # Non-guarantees
//
//   - After an error the target is partly filled. Throw it away.
//   - Ranges and cross-checks are the caller's: it adds its own Problems, with lines from Options.Lines.
//
// # What a type looks like
//
// Struct fields carry the key in a yaml tag; `yaml:",inline"` lifts the keys of an embedded struct. Supported
// are structs, maps with string keys, slices, pointers, strings, booleans (on, off, true, false), integers,
// finite numbers, time.Duration (as Go writes it), encoding.TextUnmarshaler for scalars, and Variant for
// values that may be written in several shapes.
package strictyaml
