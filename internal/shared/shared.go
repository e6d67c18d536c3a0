// Package shared keeps what several users of one process have in common: a connection, a pool, a listener.
package shared

import "sync"

// Values has one value for each key, for as long as it has a user. The zero Values has none. It is safe for
// concurrent use.
type Values[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*value[V]
}

type value[V any] struct {
	made  V
	users int
}

// Use returns the value of key, which open makes where there is none. end gives it up; the last one to do
// so closes it.
func (s *Values[K, V]) Use(key K, open func() (V, error), closed func(V)) (made V, end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.of[key]
	if v == nil {
		v = &value[V]{}
		if v.made, err = open(); err != nil {
			return made, nil, err
		}
		if s.of == nil {
			s.of = map[K]*value[V]{}
		}
		s.of[key] = v
	}
	v.users++
	return v.made, sync.OnceFunc(func() {
		s.mu.Lock()
		v.users--
		last := v.users == 0
		if last && s.of[key] == v {
			delete(s.of, key)
		}
		s.mu.Unlock()
		if last {
			closed(v.made)
		}
	}), nil
}

// Forget has the next Use of key make another value. The present one stays with its users.
func (s *Values[K, V]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}
