// Package locate finds the runs of a singleton, or of each shard of a type, and sends HTTP requests to them.
// A member sends all others the starts and stops of its runs. Where a location is unknown, or failed a
// caller, all members are asked.
//
// # Guarantees
//
//   - A location never goes back to a run with a smaller token.
//   - No location names a member that is gone or down.
//   - A request that was handled, or may have been, is not sent again.
//
// # Non-guarantees
//
//   - A location may be late, or wrong, for as long as messages take: the receiver of a request has to check
//     whether it runs the slot.
//
// # Assumptions
//
//   - The topic is the locators' own, and all members have as many slots under it.
package locate
