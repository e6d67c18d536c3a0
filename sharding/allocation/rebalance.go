package allocation

import (
	"cmp"
	"slices"
)

// bid is a shard and the member that it would choose now.
type bid struct {
	shard, member int
	score         uint64
}

// queue holds bids, the highest at the end.
type queue []bid

func (b bid) compare(other bid) int {
	return cmp.Or(cmp.Compare(b.score, other.score), cmp.Compare(other.shard, b.shard),
		cmp.Compare(other.member, b.member))
}

func (q *queue) push(b bid) {
	at, _ := slices.BinarySearchFunc(*q, b, bid.compare)
	*q = slices.Insert(*q, at, b)
}

func (q *queue) pop() bid {
	last := len(*q) - 1
	b := (*q)[last]
	*q = (*q)[:last]
	return b
}

// below returns the able members with a load below limit.
func (w *work) below(limit int) []int {
	members := make([]int, 0, len(w.able))
	for _, j := range w.able {
		if w.loads[j] < limit {
			members = append(members, j)
		}
	}
	return members
}

// choose returns the one of the members that has the highest score for shard i and a load below limit.
func (w *work) choose(i int, members []int, limit int) (b bid, found bool) {
	b.shard = i
	for _, j := range members {
		if s := w.score(i, j); (s > b.score || !found) && w.loads[j] < limit {
			b.member, b.score, found = j, s, true
		}
	}
	return b, found
}

// place gives each of the shards to the member with the highest score that has room. Where two want the last
// room, the higher score gets it: the one stable matching, whatever the order in which it is found.
func (w *work) place(shards []int, reason Reason) {
	bids, members := make(queue, 0, len(shards)), w.below(w.capacity)
	for _, i := range shards {
		if b, found := w.choose(i, members, w.capacity); found {
			bids = append(bids, b)
		}
	}
	slices.SortFunc(bids, bid.compare)
	for len(bids) > 0 {
		b := bids.pop()
		if w.loads[b.member] < w.capacity {
			w.move(b.shard, b.member, reason)
		} else if again, found := w.choose(b.shard, members, w.capacity); found {
			bids.push(again)
		}
	}
}

// recoverShards finds owners for the shards that have none, then for those of members that leave.
func (w *work) recoverShards() {
	var unowned, leaving []int
	for i, j := range w.at {
		switch {
		case w.fixed[i]:
		case j == nowhere:
			unowned = append(unowned, i)
		case w.members[j].Leaving && !w.members[j].Unreachable:
			leaving = append(leaving, i)
		}
	}
	w.place(w.follow(unowned, Unowned), Unowned)
	w.place(w.follow(leaving, OwnerLeaves), OwnerLeaves)
}

// rebalance attracts first: what an owner that has too many gives away like this it need not shed.
func (w *work) rebalance() {
	switch {
	case w.doubt:
	case w.target != nil:
		w.follow(w.misplaced(), Preferred)
	default:
		w.attract()
		w.place(w.shed(), OwnerFull)
	}
}

// attract lets members with less than their share take the shards that prefer them to their owners.
func (w *work) attract() {
	var bids queue
	members := w.below(w.share)
	for i := range w.at {
		if b, better := w.better(i, members); better {
			bids = append(bids, b)
		}
	}
	slices.SortFunc(bids, bid.compare)
	for len(bids) > 0 {
		b := bids.pop()
		if w.fixed[b.shard] || w.loads[b.member] >= w.share {
			if again, better := w.better(b.shard, members); better {
				bids.push(again)
			}
			continue
		}
		owner := w.at[b.shard]
		w.move(b.shard, b.member, Preferred)
		if w.loads[owner] == w.share-1 { // one more that attracts
			members = w.below(w.share)
			for i := range w.at {
				if b, better := w.better(i, members); better && b.member == owner {
					bids.push(b)
				}
			}
		}
	}
}

// better returns the one of the members that has less than its share and that shard i prefers to its owner.
func (w *work) better(i int, members []int) (bid, bool) {
	if w.fixed[i] {
		return bid{}, false
	}
	b, found := w.choose(i, members, w.share)
	return b, found && b.score > w.score(i, w.at[i])
}

// shed takes from each member what it has above the capacity: the shards that prefer it least.
func (w *work) shed() []int {
	var shards []int
	for _, j := range w.able {
		excess := w.loads[j] - w.capacity
		if excess <= 0 {
			continue
		}
		var own queue
		for i, at := range w.at {
			if at == j && !w.fixed[i] {
				own = append(own, bid{i, j, w.score(i, j)})
			}
		}
		slices.SortFunc(own, bid.compare)
		for _, b := range own[:min(excess, len(own))] {
			shards = append(shards, b.shard)
			w.at[b.shard] = nowhere
			w.loads[j]--
		}
	}
	return shards
}
