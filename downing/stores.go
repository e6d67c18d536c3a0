package downing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Two sides that ask for the lease in two stores would both get it. So the identity of each member's store travels in a tag. A member
// whose store is not the cluster's is suspended and writes nothing, whatever happens: in a cut it goes by what the others of its
// side get, or down. What is not known is not compared: members of an older version, and stores that cannot tell.

// identifyStore asks the store which one it is. Empty: it cannot tell, or not now.
func (e *engine) identifyStore(ctx context.Context) (string, error) {
	store, ok := e.cfg.Store.(lease.Identified)
	if !ok {
		return "", errNoIdentity
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	id, err := store.Identity(ctx)
	if err != nil {
		return "", err
	}
	return shortHash(id), nil
}

var errNoIdentity = errors.New("downing: stores of this kind do not tell which one they are")

// firstIdentity asks before this member shows itself to others. Not to know is no reason to wait. The loop does not run yet.
func (e *engine) firstIdentity(ctx context.Context) {
	id, err := e.identifyStore(ctx)
	if err != nil {
		e.log.Info("sbr: it is not known which store keeps the lease, so it is not compared with those of the others",
			"lease", e.cfg.leaseName(), "reason", oneLine(err))
	}
	e.storeID = id
}

// identityEvery is how often a member asks its store again which one it is, while the members name several.
const identityEvery = 30 * time.Second

// watchIdentity asks now and then: an address can lead to another store than before, and a right can be given later.
func (e *engine) watchIdentity() {
	if _, ok := e.cfg.Store.(lease.Identified); !ok {
		return
	}
	for last := time.Now(); e.ctx.Err() == nil; {
		e.rest(identityEvery*3/4 + rand.N(identityEvery/2)) // not all members at once
		if len(e.Status().OtherStore) == 0 && time.Since(last) < rightsEvery {
			continue
		}
		last = time.Now()
		if id, err := e.identifyStore(e.ctx); err == nil {
			e.inbox.Post(func() { e.storeIs(id) })
		}
	}
}

// storeIs takes in which store this member uses. Loop only.
func (e *engine) storeIs(id string) {
	if id == e.storeID {
		return
	}
	if e.storeID != "" {
		e.log.Error("sbr: the lease is in another store than before", "lease", e.cfg.leaseName(), "was", e.storeID, "now", id)
	}
	e.storeID, e.tags[TagStore] = id, id
	e.setTags()
}

// compareStores suspends this member while its store is not the cluster's. It returns the members that use another one than the
// cluster. Loop only.
func (e *engine) compareStores(s *sbr.Snapshot) (others []string) {
	if e.lease == nil {
		return nil
	}
	cluster := clusterStore(s.Members, e.storeOf)
	var with []string
	for i := range s.Members {
		m := &s.Members[i]
		switch id := e.storeOf(m.ID); {
		case id == "" || !m.Downable():
		case id == cluster:
			with = append(with, m.Name)
		default:
			others = append(others, m.Name)
		}
	}
	e.nameStores(others, cluster)
	if e.storeID == "" || cluster == "" || e.storeID == cluster {
		e.free(byStore, "the lease of this member is in the store of the cluster")
		return others
	}
	e.hold(byStore, fmt.Sprintf("this member keeps the lease in another store (%s) than the cluster (%s: %s): give it the lease section of "+
		"their configuration", e.storeID, cluster, strings.Join(firstNames(with), ", ")))
	return others
}

// nameStores says whose store is not the cluster's, once for each change. Loop only.
func (e *engine) nameStores(others []string, cluster string) {
	if slices.Equal(others, e.saidStores) {
		return
	}
	e.saidStores = others
	if len(others) == 0 {
		e.log.Info("sbr: the members keep the lease in one store", "store", cluster)
		return
	}
	e.log.Error("sbr: members keep the lease in another store than the cluster: they are suspended, and write nothing",
		"members", others, "cluster-store", cluster, "our-store", e.storeID)
}

// storeOf is which store a member names, this one included; empty if it names none.
func (e *engine) storeOf(id sbr.ID) string {
	if id == e.self.ID {
		return e.storeID
	}
	return e.members.stores[id]
}

// clusterStore is the store that the most members name; of several that of the oldest member among them. Empty: nobody names any.
// Every member comes to the same answer, because it counts also those that it cannot reach and that are not decided about: a cut does not
// change it, a verdict may. The many are right because one member alone is the common mistake, and must not stop the others; the oldest,
// because a newcomer must not stop the one that it has come to.
func clusterStore(members []sbr.Member, storeOf func(sbr.ID) string) string {
	votes, oldest := make(map[string]int), make(map[string]*sbr.Member)
	best := ""
	for i := range members {
		m := &members[i]
		store := storeOf(m.ID)
		if store == "" || !m.Downable() {
			continue
		}
		votes[store]++
		if oldest[store] == nil || sbr.Older(m, oldest[store]) {
			oldest[store] = m
		}
	}
	for store, n := range votes {
		if best == "" || n > votes[best] || n == votes[best] && sbr.Older(oldest[store], oldest[best]) {
			best = store
		}
	}
	return best
}

// isAstray reports whether this member's store is not the cluster's. Loop only.
func (e *engine) isAstray() bool { return e.held.by[byStore] }

// astray is why a member writes nothing.
const astray = "the lease of this member is in another store than the cluster's, so it writes nothing there"

// firstNames are the first few of a list.
func firstNames(names []string) []string {
	const most = 5
	if rest := len(names) - most; rest > 0 {
		return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", rest))
	}
	return names
}
