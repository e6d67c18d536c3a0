// Package locate tells callers where runs are, of a singleton or of each shard of a type, and sends HTTP
// requests to them. A member that runs something tells all others when it starts and when it stops; where
// that is not known, or was of no use to a caller, everybody is asked.
//
// # Guarantees
//
//   - A location never goes back to a run with a smaller token.
//   - A member that is gone or down is nobody's location.
//   - A request that was handled, or may have been, is not sent again.
//
// # Non-guarantees
//
//   - A location may be late, or wrong, for as long as messages take: whoever is asked has to look for
//     itself.
//
// # Assumptions
//
//   - The topic is the locators' own, and all members have as many slots under it.
package locate
