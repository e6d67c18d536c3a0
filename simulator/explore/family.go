package explore

import "context"

// Family is a number of walks that are the same but for the names of the members. One of them is enough when the strategy
// cannot tell the names apart.
type Family struct {
	// Form says what the walks have in common: the sizes of the sides in the order in which they decide ("3>2 2s" is three,
	// then two, 2s later; "+" is at the same moment). Partition is that of the first.
	// Sizes are those of the sides alone, the largest first.
	Form, Partition, Sizes string
	Walks                  []Walk
}

// FamilyResult is what the walks of a family found.
type FamilyResult struct {
	WalkCounts
	// Walked are the walks that were made, Covered those that another one speaks for.
	Walked, Covered int
	// Complete says that every walk was made or covered, and searched everything.
	Complete bool
	// Broken are the first violations, with the partition in which they were found. After the first walk that finds any there are no more.
	Broken []Violation
}

// Run makes the walks that are needed. It looks at ctx now and then; progress may be nil, and is told what was counted in this family.
func (f Family) Run(ctx context.Context, progress func(WalkCounts)) FamilyResult {
	var (
		result FamilyResult
		made   []*Walk
		notes  []*walkNotes
	)
next:
	for k := range f.Walks {
		o := f.Walks[k]
		for i := range made {
			if notes[i].covers(made[i], &o) {
				result.Covered++
				continue next
			}
		}
		asked := newWalkNotes(o.Strategy)
		o.Strategy = asked
		if progress != nil {
			before := result.WalkCounts
			o.Progress = func(c WalkCounts) { progress(before.Add(c)) }
		}
		w := newWalker(o)
		asked.looks = &w.looks
		r := w.search.Run(ctx)
		result.Walked++
		result.WalkCounts = result.Add(r.Counts)
		for _, v := range r.Broken {
			v.Cluster = Partition(o.Sides).String()
			result.Broken = append(result.Broken, v)
		}
		if len(r.Broken) > 0 || !r.Complete {
			return result
		}
		made, notes = append(made, &f.Walks[k]), append(notes, asked)
	}
	result.Complete = true
	return result
}
