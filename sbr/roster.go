package sbr

import "slices"

// roster is the membership in address order, with the counts that make a step cheap.
type roster struct {
	members []Member
	index   map[ID]int32
	// suspects counts the members that are unreachable and may still have to be downed: only they start or prolong a deadline.
	suspects int
	// awaiting counts the members that are alive but not yet Up.
	awaiting int
	// downed counts the members that were downed but are still here; decided those of them that the cluster lists no longer.
	downed, decided int
	rankOK          bool
	rank            int
}

// suspect reports whether the member starts or prolongs a deadline: leaving and downed ones do not (design deviation 7).
func (m *Member) suspect() bool { return m.Unreachable && m.Status <= Up }

func (s *roster) get(id ID) *Member {
	if i, ok := s.index[id]; ok {
		return &s.members[i]
	}
	return nil
}

func (s *roster) count(m *Member, by int) {
	if m.suspect() {
		s.suspects += by
	}
	if m.awaiting && m.Status == Joining {
		s.awaiting += by
	}
	if m.Status == Down {
		s.downed += by
		if m.Unlisted {
			s.decided += by
		}
	}
	s.rankOK = false
}

// put inserts or replaces a member.
func (s *roster) put(m Member) {
	if s.index == nil {
		s.index = make(map[ID]int32)
	}
	if i, ok := s.index[m.ID]; ok {
		old := &s.members[i]
		if CompareMembers(old, &m) == 0 {
			s.count(old, -1)
			*old = m
			s.count(old, 1)
			return
		}
		s.remove(m.ID)
	}
	i, _ := slices.BinarySearchFunc(s.members, m, func(a, b Member) int { return CompareMembers(&a, &b) })
	s.members = slices.Insert(s.members, i, m)
	s.reindex(i)
	s.count(&s.members[i], 1)
}

func (s *roster) remove(id ID) {
	i, ok := s.index[id]
	if !ok {
		return
	}
	m := s.members[i]
	s.count(&m, -1)
	s.members = slices.Delete(s.members, int(i), int(i)+1)
	delete(s.index, id)
	s.reindex(int(i))
}

func (s *roster) reindex(from int) {
	for i := from; i < len(s.members); i++ {
		s.index[s.members[i].ID] = int32(i)
	}
}

// change applies f to a member and keeps the counts right. f must not change what members are ordered by.
func (s *roster) change(m *Member, f func(*Member)) {
	s.count(m, -1)
	f(m)
	s.count(m, 1)
}

// position is how many reachable up members come before id: zero for the leader of the side.
func (s *roster) position(self ID) int {
	if s.rankOK {
		return s.rank
	}
	s.rank, s.rankOK = 0, true
	for i := range s.members {
		m := &s.members[i]
		if m.ID == self {
			break
		}
		if m.counted() && !m.Unreachable {
			s.rank++
		}
	}
	return s.rank
}

// reachable lists the downable members on this side in address order, without self.
func (s *roster) reachable(self ID) []ID {
	var ids []ID
	for i := range s.members {
		if m := &s.members[i]; m.ID != self && !m.Unreachable && m.Downable() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
