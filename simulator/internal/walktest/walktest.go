package walktest

import "github.com/serf-sbr/serf-sbr/simulator/internal/walk"

// The words of a search, which models of singletons and shards share.
type (
	// Kind is what can happen next, Move something that can.
	Kind = walk.Kind
	Move = walk.Move
	// Model is what a Search searches, and Report what it finds.
	Model[S any]  = walk.Model[S]
	Search[S any] = walk.Search[S]
	Report        = walk.Report
	Counts        = walk.Counts
)

// Waits lets time pass.
const Waits = walk.Waits
