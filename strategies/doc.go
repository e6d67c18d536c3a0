// Package strategies holds the rules that decide which side of a partition stays up.
//
// A strategy is a pure function from a sbr.View to a sbr.Choice, one file each. Their names, settings,
// defaults and decisions are those of the split brain resolver of Akka and Pekko (keep-referee: of Akka.NET):
//
//	keep-majority   the larger side stays; of two halves the one with the lowest address
//	static-quorum   a side with at least quorum-size members stays
//	keep-oldest     the side of the oldest member stays, unless that member is alone
//	keep-referee    the side that reaches one named member stays
//	down-all        nobody stays
//	lease-majority  the side that gets the lease stays; the larger one asks first
//
// New looks one up by the name that the configuration uses. sbr.Decide turns its choice into the members that
// go down.
//
// # Terms
//
// A member is counted when it is up or leaving and has the strategy's role; without a role every member has
// it. Joining and weakly-up members are not counted but go down with their side. Exiting and downed members
// are neither counted nor downed: they are on their way out. The lowest address and the oldest member are
// looked for among the counted members.
//
// # Guarantees
//
//   - Decide is pure and total: it reads nothing but the view and the settings, answers every view, and never
//     panics.
//   - A view in which no member is unreachable or indirectly connected gets the kind None, whatever the
//     strategy.
//   - Two sides of a clean cut that know of the same members with the same statuses are never both kept by
//     keep-majority, keep-oldest, static-quorum or keep-referee.
//
// # Non-guarantees
//
//   - Only lease-majority is safe when the two sides know of different members, when there are more than two
//     views of one partition, or when reachability is not symmetric: it lets one lease decide. The others
//     count, and a count can be wrong.
//   - keep-majority and keep-oldest look for the one change that may have slipped through during the cut (a
//     member that became up or left) and then down all members. That is the reference's rule; it is no proof.
//     Known gap: when a joining member with the lowest address of all becomes up on the other side and makes
//     the sides equal, keep-majority keeps both.
//   - No member is guaranteed to stay: a split into three parts without a majority downs all three.
//
// # Assumptions
//
//   - All members use the same strategy with the same settings.
//   - The view was stable long enough for both sides to see the same cut (stable-after).
package strategies
