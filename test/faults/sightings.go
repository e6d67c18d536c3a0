package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Sightings is what a watch brought.
type Sightings struct {
	mu      sync.Mutex
	records []lease.Record
}

// Follow collects what a watch brings until the end of the cell.
func Follow(ctx context.Context, t *T, watch func(context.Context, *Sightings) error) *Sightings {
	s := &Sightings{}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- watch(ctx, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a watch ended: %v", err)
		}
	})
	return s
}

func (s *Sightings) all() []lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

// Add is what a watch calls.
func (s *Sightings) Add(r lease.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
}

// Attempt reports whether the record has ever shown a holder with this nonce, and then, under the same nonce,
// none.
func (s *Sightings) Attempt(nonce string) (won, freed bool) {
	won = s.first(nonce, true) != ""
	return won, won && s.first(nonce, false) != ""
}

// first is what the record was when it first showed the nonce, held or free, in the words of the tables.
func (s *Sightings) first(nonce string, held bool) string {
	for _, r := range s.all() {
		if r.Nonce == nonce && held == (r.Holder != "") {
			return Describe(lease.Snapshot{Record: r, Version: "seen"})
		}
	}
	return ""
}

// Last is the newest in the words of the tables, empty if there is none.
func (s *Sightings) Last() string {
	all := s.all()
	if len(all) == 0 {
		return ""
	}
	return Describe(lease.Snapshot{Record: all[len(all)-1], Version: "seen"})
}

// Problem says where the watch went backwards, empty if nowhere: it may skip states only.
func (s *Sightings) Problem() string {
	all := s.all()
	for i := range all[1:] {
		if all[i+1].Token < all[i].Token {
			return fmt.Sprintf("the watch went from token %d back to %d", all[i].Token, all[i+1].Token)
		}
	}
	return ""
}
