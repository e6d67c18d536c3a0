// Package shrink makes a scenario that fails small: the fewest steps and members, round times, plain faults,
// default settings.
//
//	small := shrink.Shrink(s, shrink.Same(s, 7), shrink.Options{})
//	os.Stdout.Write(scenario.Format(small))
//
// # Guarantees
//
//   - What comes back validates and was seen to fail, if what went in did.
//   - Given enough tries, no single step, no single member and no single setting can be left out of it.
//   - The same scenario and the same answers of fails give the same result. Nothing reads a clock or starts a
//     goroutine.
//   - fails is called at most as often as Options says.
//
// # Non-guarantees
//
//   - It is not the smallest scenario of all: two steps that can only be left out together may stay.
//   - It fails, not more: whether for the same reason is for fails to say. Same says so for runs.
//
// # Assumptions
//
//   - fails depends on nothing but the scenario. It must not change it.
package shrink
