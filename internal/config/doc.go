// Package config reads sbr.yaml, the one configuration of a member, and turns it into what the other packages
// take.
//
// Decoding is strict (package strictyaml): an unknown key is an error that names the key, its line and the
// nearest known one. The blocks split-brain-resolver and lease are types of their own, which scenario files
// of the simulator decode as well.
//
// # Guarantees
//
//   - Parse returns a File that validates, or an error with every problem, each with its key path and line.
//   - Absent keys take their defaults: those of the reference resolver, where it has the key.
//   - Effective prints all settings with their computed values and reads back to the same File.
//   - Members whose Digest differs decide by different rules, or over different leases.
//
// # Non-guarantees
//
//   - Nothing outside the file is looked at: whether a namespace, a path or an address exists shows at the
//     start.
//   - Effective shows secrets. Print Redacted().Effective().
package config
