package explore

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Schema is the number of the form of a Report.
const Schema = 1

// Report is what random exploring found. Its JSON form is the schema.
type Report struct {
	// Schema is 1.
	Schema int `json:"schema"`
	// Version is that of the program.
	Version string `json:"version"`
	// From and To are the first and the last seed, both included; To is 2^53 where only the time was bounded.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// For is the budget of time, as Go writes durations; 0s for none.
	For Span `json:"for"`
	Played
	// Interrupted says that the caller ended it before its seeds were played and before its time was over.
	Interrupted bool `json:"interrupted"`
	// Elapsed is how long the runs took, as Go writes durations.
	Elapsed Span `json:"elapsed"`
	// Singletons and Shards are what became of those. In runs that only provoke a transition there are none.
	Singletons scenario.Totals `json:"singletons"`
	Shards     scenario.Totals `json:"shards"`
	// Failures are one of each kind, the lowest seed first.
	Failures []*Failure `json:"failures"`
	// Coverage is how often each transition was taken: by chance, or where it is in Provoked, only by a
	// scenario that provokes it.
	Coverage map[string]uint64 `json:"coverage"`
	Provoked []string          `json:"provoked"`
	// Never are the known transitions that were not taken, New the unknown ones that were taken.
	Never []string `json:"never"`
	New   []string `json:"new"`
}

// Span is a duration that is written as Go writes durations.
type Span time.Duration

// String is as Go writes durations.
func (s Span) String() string { return time.Duration(s).String() }

// MarshalText writes what String does.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Take writes findings into the report: runs, failures, and coverage.
func (r *Report) Take(f *Findings) {
	r.Played = f.Played
	r.Failures, r.Coverage = f.Failures(), f.Coverage.Counts()
	r.Singletons, r.Shards = f.Singletons, f.Shards
	r.compare()
}

// compare works out what is never taken, and what is new.
func (r *Report) compare() {
	k := KnownTransitions()
	r.Never, r.New = k.Never(r.Coverage), k.New(r.Coverage)
	for _, list := range []*[]string{&r.Never, &r.New, &r.Provoked} {
		if *list == nil {
			*list = []string{} // written as [], not as null
		}
	}
	if r.Failures == nil {
		r.Failures = []*Failure{}
	}
	for _, t := range []*scenario.Totals{&r.Singletons, &r.Shards} {
		if t.Why == nil {
			t.Why = map[string]int{} // written as {}
		}
	}
}

// Provoke plays the scenarios of those rare transitions that chance has not taken. What breaks in them is a
// failure like any other. A transition that is not rare is left to chance: that such a scenario takes it as
// well does not count. Errors: none but a broken build.
func (r *Report) Provoke() error {
	known := KnownTransitions()
	f, err := known.provoke(r.Never)
	if err != nil {
		return err
	}
	counts := f.Coverage.Counts()
	for _, name := range r.Never {
		if k, _ := known.find(name); k.Provoke != "" && counts[name] > 0 {
			r.Coverage[name] = counts[name]
			r.Provoked = append(r.Provoked, name)
		}
	}
	slices.Sort(r.Provoked)
	r.Failed += f.Failed
	r.Failures = append(r.Failures, f.Failures()...)
	r.compare()
	return nil
}
