package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Schema is the number of the form of a Report. A report of another form is refused.
const Schema = 1

// MaxReportBytes is the largest report that ReadReport reads.
const MaxReportBytes = 16 << 20

// Report is what random exploring found, as it is kept in a file and joined with others. Its JSON form is the schema.
type Report struct {
	// Schema is 1.
	Schema int `json:"schema" yaml:"schema"`
	// Version is that of the program. Reports of different versions are not joined.
	Version string `json:"version" yaml:"version"`
	// From and To are the first and the last seed of all shards, both included; To is 2^53 where only the time was bounded.
	From uint64 `json:"from" yaml:"from"`
	To   uint64 `json:"to" yaml:"to"`
	// For is the budget of time, as Go writes durations; 0s for none.
	For Span `json:"for" yaml:"for"`
	// Shard is the part of the seeds that was played, such as 2/8: every 8th seed, beginning with the second. 1/1 is all of them.
	Shard Shard `json:"shard" yaml:"shard"`
	// ShardFrom are the environment variables that Shard was taken from; empty if it was given.
	ShardFrom string `json:"shard-from" yaml:"shard-from"`
	// Runs is how many seeds were played, Failed in how many of them something was broken.
	Runs   uint64 `json:"runs" yaml:"runs"`
	Failed uint64 `json:"failed" yaml:"failed"`
	// Excepted is in how many runs a promise was broken as S1 allows: see scenario.Result.Excepted.
	Excepted uint64 `json:"excepted" yaml:"excepted"`
	// Complete says that all seeds of the shard were played.
	Complete bool `json:"complete" yaml:"complete"`
	// Interrupted says that somebody ended it before its seeds were played and before its time was over.
	Interrupted bool `json:"interrupted" yaml:"interrupted"`
	// Elapsed is how long the runs took, as Go writes durations; of joined reports it is that of the slowest.
	Elapsed Span `json:"elapsed" yaml:"elapsed"`
	// Singletons and Shards are what became of those. In runs that only provoke a transition there are none.
	Singletons scenario.Totals `json:"singletons" yaml:"singletons"`
	Shards     scenario.Totals `json:"shards" yaml:"shards"`
	// Failures are one of each kind, the lowest seed first.
	Failures []*Failure `json:"failures" yaml:"failures"`
	// Coverage is how often each transition was taken: by chance, or where it is in Provoked, only by a scenario that provokes it.
	Coverage map[string]uint64 `json:"coverage" yaml:"coverage"`
	Provoked []string          `json:"provoked" yaml:"provoked"`
	// Never are the known transitions that were not taken, New those that were taken and are not known. Reading and joining work
	// them out anew.
	Never []string `json:"never" yaml:"never"`
	New   []string `json:"new" yaml:"new"`
}

// Span is a duration that is written as Go writes durations.
type Span time.Duration

// String is as Go writes durations.
func (s Span) String() string { return time.Duration(s).String() }

// MarshalText writes what String does.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what Go writes.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("must be a duration such as 90s, found %.40q", text)
	}
	*s = Span(d)
	return nil
}

// Take writes findings into the report: runs, failures, and coverage.
func (r *Report) Take(f *Findings) {
	r.Runs, r.Failed, r.Excepted, r.Complete = f.Runs, f.Failed, f.Excepted, f.Complete
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
		t.Add(new(scenario.Totals)) // as well
	}
}

// Provoke plays the scenarios of those rare transitions that chance has not taken. What breaks in them is a failure like any other. One
// that is not rare is left to chance: that such a scenario takes it as well does not count.
// Errors: none but a broken build.
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

// ReadReport reads a report strictly; name stands for the file in errors. The error has one line for each problem.
func ReadReport(name string, data []byte) (*Report, error) {
	var r Report
	lines := make(map[string]int)
	opts := strictyaml.Options{Name: name, MaxBytes: MaxReportBytes, MaxValues: maxReportValues, Lines: lines}
	if err := strictyaml.Decode(data, &r, opts); err != nil {
		return nil, err
	}
	if err := r.problems().Locate(name, lines).Err(); err != nil {
		return nil, err
	}
	r.compare()
	return &r, nil
}

const (
	maxReportValues = 200_000
	// maxCount bounds each number, so that sums of many do not overflow.
	maxCount = 1 << 43
)

// problems are what no report of this program says.
func (r *Report) problems() (p strictyaml.Problems) {
	need := func(ok bool, path, format string, args ...any) {
		if !ok {
			p.Add(path, format, args...)
		}
	}
	need(r.Schema == Schema, "schema", "is %d: this version reads %d", r.Schema, Schema)
	need(r.Version != "", "version", "is not set")
	need(r.From <= r.To, "from", "is %d, after the last seed %d", r.From, r.To)
	need(r.To <= MaxSeed, "to", "is %d: the largest seed is %d", r.To, uint64(MaxSeed))
	need(r.Shard != Shard{}, "shard", "is not set")
	need(r.For >= 0, "for", "is %v: it must not be negative", r.For)
	need(r.Elapsed >= 0, "elapsed", "is %v: it must not be negative", r.Elapsed)
	if len(p) > 0 {
		return p
	}
	seeds := r.Shard.Count(r.From, r.To)
	need(r.Runs <= seeds, "runs", "are %d, but the shard has %d seeds", r.Runs, seeds)
	need(r.Complete == (r.Runs == seeds), "complete", "is %v, but %d of %d seeds were played", r.Complete, r.Runs, seeds)
	need(!r.Complete || !r.Interrupted, "interrupted", "is true, but all seeds were played")
	need(r.Complete || r.Interrupted || r.For > 0, "complete", "is false, but there was no budget of time, and nobody interrupted it")
	need((r.Failed == 0) == (len(r.Failures) == 0), "failed", "are %d, but %d failures are listed", r.Failed, len(r.Failures))
	for i, f := range r.Failures {
		at := fmt.Sprintf("failures[%d]", i)
		if f == nil {
			p.Add(at, "is empty")
			continue
		}
		need(f.Promise != "", at+".promise", "is not set")
		need(f.Text != "", at+".text", "is not set")
		need(f.Runs > 0 && f.Runs <= r.Failed, at+".runs", "are %d of %d failed ones", f.Runs, r.Failed)
	}
	for name, t := range map[string]*scenario.Totals{"singletons": &r.Singletons, "shards": &r.Shards} {
		need(t.Runs <= r.Runs, name+".runs", "are %d of %d", t.Runs, r.Runs)
		need(t.Largest() <= maxCount, name, "count up to %d: it must be at most %d", t.Largest(), uint64(maxCount))
	}
	for name, n := range r.Coverage {
		need(n > 0 && n <= maxCount, "coverage."+name, "is %d: it must be 1 to %d", n, uint64(maxCount))
	}
	return p
}

// ErrMerge is wrapped by the errors of Merge.
var ErrMerge = errors.New("these reports do not make a whole")

// NamedReport is a report and the file it comes from.
type NamedReport struct {
	Name string
	*Report
}

// Merge joins the reports of all shards of one exploring. Runs, failures and coverage are added up, and the result is that of the
// shard 1/1. The error wraps ErrMerge and has one line for each problem: a shard that is missing or there twice, other seeds, another
// budget or another version than the first report's.
func Merge(parts []NamedReport) (*Report, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrMerge)
	}
	if err := fitting(parts); err != nil {
		return nil, err
	}
	first := parts[0]
	all := Report{
		Schema: Schema, Version: first.Version, From: first.From, To: first.To, For: first.For, Shard: Shard{Index: 1, Of: 1},
		Complete: true, Coverage: make(map[string]uint64),
	}
	kinds := make(map[kind]*Failure)
	for _, p := range parts {
		all.Runs += p.Runs
		all.Failed += p.Failed
		all.Excepted += p.Excepted
		all.Complete = all.Complete && p.Complete
		all.Interrupted = all.Interrupted || p.Interrupted
		all.Elapsed = max(all.Elapsed, p.Elapsed)
		all.mergeCoverage(p.Report)
		all.Singletons.Add(&p.Singletons)
		all.Shards.Add(&p.Shards)
		mergeFailures(kinds, p.Failures)
	}
	for _, f := range kinds {
		all.Failures = append(all.Failures, f)
	}
	all.Failures = sortedFailures(slices.Values(all.Failures))
	all.compare()
	return &all, nil
}

// mergeCoverage adds what chance took. What was only provoked counts as never taken: whoever joins provokes it again.
func (r *Report) mergeCoverage(p *Report) {
	provoked := make(map[string]bool, len(p.Provoked))
	for _, name := range p.Provoked {
		provoked[name] = true
	}
	for name, n := range p.Coverage {
		if !provoked[name] {
			r.Coverage[name] += n
		}
	}
}

func mergeFailures(kinds map[kind]*Failure, failures []*Failure) {
	for _, f := range failures {
		k, c := f.kind(), *f
		if old := kinds[k]; old != nil {
			c.Runs += old.Runs
			if cmp.Compare(old.Seed, f.Seed) < 0 {
				runs := c.Runs
				c = *old
				c.Runs = runs
			}
		}
		kinds[k] = &c
	}
}

// fitting returns nil if the parts are all of one whole, each once.
func fitting(parts []NamedReport) error {
	first := parts[0]
	of := first.Shard.normal().Of
	var problems []error
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%w: "+format, append([]any{ErrMerge}, args...)...))
	}
	where := make(map[int]string)
	for _, p := range parts {
		switch s := p.Shard.normal(); {
		case p.Version != first.Version:
			add("%s is of version %s, %s of %s", p.Name, p.Version, first.Name, first.Version)
		case p.From != first.From || p.To != first.To:
			add("%s is about the seeds %d-%d, %s about %d-%d", p.Name, p.From, p.To, first.Name, first.From, first.To)
		case p.For != first.For:
			add("%s had a budget of %v, %s of %v", p.Name, p.For, first.Name, first.For)
		case s.Of != of:
			add("%s is one of %d shards, %s one of %d", p.Name, s.Of, first.Name, of)
		case where[s.Index] != "":
			add("the shard %v is there twice: %s and %s", s, where[s.Index], p.Name)
		default:
			where[s.Index] = p.Name
		}
	}
	if len(problems) == 0 {
		if missing := missingShards(where, of); missing != "" {
			add("missing: %s", missing)
		}
	}
	return errors.Join(problems...)
}

// missingShards names those that are not there, some of many.
func missingShards(where map[int]string, of int) string {
	const limit = 20
	var names []string
	for i := 1; i <= of && len(names) < limit; i++ {
		if where[i] == "" {
			names = append(names, Shard{Index: i, Of: of}.String())
		}
	}
	if more := of - len(where) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
