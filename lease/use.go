package lease

import (
	"fmt"
	"reflect"
	"sync"
)

// uses are the records that the open leases of this process use, by location, and what for. It is the whole
// process that must agree: the uses come from packages that know nothing of each other.
var uses = struct {
	sync.Mutex
	of map[any]*use
}{of: map[any]*use{}}

type use struct {
	what   string
	leases int
}

// claim notes that a lease uses a record, unless it serves another use already. end takes that back.
func claim(s Store, what string) (end func(), err error) {
	where, ok := location(s)
	if what == "" || !ok {
		return func() {}, nil
	}
	uses.Lock()
	defer uses.Unlock()
	u := uses.of[where]
	if u == nil {
		u = &use{what: what}
		uses.of[where] = u
	}
	if u.what != what {
		return nil, fmt.Errorf("%w: %v is that of %s, and cannot be that of %s as well: give each a record of its own "+
			"(another lease name; a folder as lease.file.path)", ErrInUse, where, u.what, what)
	}
	u.leases++
	return func() {
		uses.Lock()
		defer uses.Unlock()
		if u.leases--; u.leases == 0 {
			delete(uses.of, where)
		}
	}, nil
}

// location is where a store keeps its record, or the store itself where it does not say.
func location(s Store) (where any, ok bool) {
	if l, located := s.(Located); located {
		return l.Location(), true
	}
	return s, reflect.ValueOf(s).Comparable()
}
