// Package fence shows with a real database what a fencing token is for: a writer that was paused for longer
// than its lease, and wakes up, is refused. It is a module of its own, so that nobody else has to download a
// database.
package fence
