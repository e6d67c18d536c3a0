package walktest

import "github.com/serf-sbr/serf-sbr/simulator/internal/walk"

// The words of a search, which models of singletons and shards share.

// Kind is what can happen next.
type Kind = walk.Kind

// Move is something that can happen next.
type Move = walk.Move

// Model is what a Search searches.
type Model[S any] = walk.Model[S]

// Search is a search over the states of a Model.
type Search[S any] = walk.Search[S]

// Report is what a Search found.
type Report = walk.Report

// Counts are the sizes of a Search.
type Counts = walk.Counts

// Waits lets time pass.
const Waits = walk.Waits
