package walk

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// Way is how a letter gets to a member.
type Way uint8

// The ways.
const (
	// Between: from member to member; it may come late, twice or never.
	Between Way = iota
	// Within: something that a member hears from itself.
	Within
	// Ending: the end of a run, which may take its time.
	Ending
)

// Letter is something that is under way to a member.
type Letter[B any] struct {
	Way      Way
	From, To int8
	Late     bool
	Body     B
}

// Mail are letters under way. It is a value: what it shares with copies is never changed in place.
type Mail[B any] struct{ letters []Letter[B] }

// Post adds a letter. It panics at more than a Move can tell apart: what a model lets pile up has no end.
func (m *Mail[B]) Post(l Letter[B]) {
	if len(m.letters) > math.MaxUint8 {
		panic("walk: letters pile up")
	}
	m.letters = append(slices.Clip(m.letters), l)
}

// Len is how many letters there are; At returns one.
func (m *Mail[B]) Len() int { return len(m.letters) }

// At returns a letter.
func (m *Mail[B]) At(k int) *Letter[B] { return &m.letters[k] }

// Drop takes letters away.
func (m *Mail[B]) Drop(which func(l *Letter[B]) bool) {
	m.letters = slices.DeleteFunc(slices.Clone(m.letters), func(l Letter[B]) bool { return which(&l) })
}

// Split drops what was under way between the sides, but for what is late.
func (m *Mail[B]) Split(side Set) {
	m.Drop(func(l *Letter[B]) bool { return !l.Late && side.Has(int(l.From)) != side.Has(int(l.To)) })
}

// End drops what was under way to a member that is away.
func (m *Mail[B]) End(i int) { m.Drop(func(l *Letter[B]) bool { return int(l.To) == i }) }

// AppendKey appends the letters in an order of their own. key tells their bodies apart.
func (m *Mail[B]) AppendKey(b []byte, key LetterKey[B]) []byte {
	keys := m.keys(key)
	slices.SortFunc(keys, bytes.Compare)
	for _, k := range keys {
		b = append(append(b, byte(len(k))), k...)
	}
	return b
}

func (m *Mail[B]) keys(key LetterKey[B]) [][]byte {
	keys := make([][]byte, len(m.letters))
	for k := range m.letters {
		l := &m.letters[k]
		head := append(make([]byte, 0, 32), byte(l.Way), byte(l.From), byte(l.To), 0)
		if l.Late {
			head[3] = 1
		}
		keys[k] = key(head, l)
	}
	return keys
}

// Sorted returns the letters' numbers in an order of their own, equal ones once.
func (m *Mail[B]) Sorted(key LetterKey[B]) []int {
	keys := m.keys(key)
	return slices.CompactFunc(inOrder(keys), func(x, y int) bool { return bytes.Equal(keys[x], keys[y]) })
}

// Order returns the letters' numbers in an order of their own.
func (m *Mail[B]) Order(key LetterKey[B]) []int { return inOrder(m.keys(key)) }

func inOrder(keys [][]byte) []int {
	order := make([]int, len(keys))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Or(bytes.Compare(keys[x], keys[y]), cmp.Compare(x, y)) })
	return order
}

// Moves are what can happen to the letters of that order. A letter is called late only when nothing else keeps the clock from moving: until then it may come at any moment anyhow.
// prompt is how many keep it from moving.
func (m *Mail[B]) Moves(to []Move, c *Cluster, order []int) (moves []Move, prompt int) {
	for k := range m.letters {
		if l := &m.letters[k]; !l.Late && c.Live(int(l.To)) {
			prompt++
		}
	}
	g := &c.Budget
	for _, k := range order {
		l, at := &m.letters[k], uint8(k)
		if !c.Live(int(l.To)) {
			continue
		}
		to = append(to, Move{Delivers, at})
		between := l.Way == Between && !l.Late
		if between && g.Twice > 0 {
			to = append(to, Move{Copies, at})
		}
		if between && g.Lost > 0 {
			to = append(to, Move{Drops, at})
		}
		if !l.Late && prompt <= int(g.Late+g.Slow) && (between && g.Late > 0 || l.Way == Ending && g.Slow > 0) {
			to = append(to, Move{Delays, at})
		}
	}
	return to, prompt
}

// Do lets a move of a letter happen, and returns the letter if it is delivered.
func (m *Mail[B]) Do(mv Move, c *Cluster) (l Letter[B], delivered bool) {
	k := int(mv.At)
	l = m.letters[k]
	m.letters = slices.Clone(m.letters)
	switch mv.Kind {
	case Copies:
		c.Budget.Twice--
		m.letters[k].Late = true
		return l, true
	case Delays:
		if l.Way == Ending {
			c.Budget.Slow--
		} else {
			c.Budget.Late--
		}
		m.letters[k].Late = true
		return l, false
	case Drops:
		c.Budget.Lost--
	}
	m.letters = slices.Delete(m.letters, k, k+1)
	return l, mv.Kind == Delivers
}

// Describe says what happens to a letter; text says what is in it.
func (l *Letter[B]) Describe(mv Move, text string) string {
	text = string(Name(int(l.To))) + ": " + text
	if l.Late {
		text += " (late)"
	}
	switch mv.Kind {
	case Copies:
		return "to " + text + "; it will come AGAIN"
	case Delays:
		return "LATE from now on: to " + text
	case Drops:
		return "LOST: to " + text
	default:
		return "to " + text
	}
}
