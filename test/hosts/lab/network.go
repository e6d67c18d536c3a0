//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// change applies a change of the faults to all hosts whose rules it alters, at the same time, and returns
// when it is in force. When nft fails somewhere, the faults are as they were, and what was altered is altered
// back.
func (l *Lab) change(do func(f *faults) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.faults.clone()
	if err := do(&next); err != nil {
		return err
	}
	before := l.faults
	if err := l.apply(&before, &next); err != nil {
		return errors.Join(err, l.apply(&next, &before))
	}
	l.faults = next
	return nil
}

func (l *Lab) apply(from, to *faults) error {
	addresses := make(map[string]netip.Addr)
	for _, h := range l.hosts {
		addresses[h.name] = h.address
	}
	failed := make(chan error, len(l.hosts))
	started := 0
	for _, h := range l.hosts {
		rules := to.rules(h.name, l.store, addresses)
		if rules == from.rules(h.name, l.store, addresses) {
			continue
		}
		started++
		go func() { failed <- h.nft(rules) }()
	}
	var err error
	for range started {
		err = errors.Join(err, <-failed)
	}
	return err
}

// Connected reports whether two hosts hear each other, both ways, as far as cuts go; loss does not count.
func (l *Lab) Connected(a, b string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.faults.blocked(a, b, l.store) && !l.faults.blocked(b, a, l.store)
}

// SetLinks replaces all cuts between hosts, in one step for each: from then on to hears from if open says so.
// Hosts that are cut off from the lease store stay so, and loss stays as well.
func (l *Lab) SetLinks(open func(from, to string) bool) error {
	return l.change(func(f *faults) error {
		clear(f.cut)
		for _, from := range l.hosts {
			for _, to := range l.hosts {
				if from != to && !open(from.name, to.name) {
					f.cut[link{from.name, to.name}] = true
				}
			}
		}
		return nil
	})
}

// known returns an error for a host that the lab does not have. It is called with mu held.
func (l *Lab) known(names ...string) error {
	for _, name := range names {
		if l.host(name) == nil {
			return fmt.Errorf("lab: no host is called %q; there are %s", name, strings.Join(l.namesOf(l.hosts), ", "))
		}
	}
	return nil
}

// Partition cuts, both ways, whatever no group has in common; hosts that are in no group, such as that of the
// lease store, keep all their links. A host in two groups is a bridge between them. Like all faults it adds
// to those that are there, and lasts until it is healed.
func (l *Lab) Partition(groups ...[]string) error {
	return l.change(func(f *faults) error {
		for _, group := range groups {
			if err := l.known(group...); err != nil {
				return err
			}
		}
		f.partition(groups)
		return nil
	})
}

// Cut cuts the link between two hosts, both ways.
func (l *Lab) Cut(a, b string) error {
	return l.change(func(f *faults) error {
		f.cutBoth(a, b)
		return l.known(a, b)
	})
}

// CutOneWay lets nothing that from sends reach to.
func (l *Lab) CutOneWay(from, to string) error {
	return l.change(func(f *faults) error {
		f.cut[link{from, to}] = true
		return l.known(from, to)
	})
}

// Isolate cuts a host off from all others, that of the lease store included.
func (l *Lab) Isolate(name string) error {
	return l.change(func(f *faults) error {
		for _, other := range l.hosts {
			if other.name != name {
				f.cutBoth(name, other.name)
			}
		}
		return l.known(name)
	})
}

// CutStore cuts hosts off from the lease store, and from nothing else.
func (l *Lab) CutStore(names ...string) error {
	return l.change(func(f *faults) error {
		if l.store == "" {
			return errors.New("lab: there is no lease store to cut off from: StartAPI makes one")
		}
		for _, name := range names {
			f.store[name] = true
		}
		return l.known(names...)
	})
}

// HealStore ends CutStore for these hosts.
func (l *Lab) HealStore(names ...string) error {
	return l.change(func(f *faults) error {
		for _, name := range names {
			delete(f.store, name)
		}
		return l.known(names...)
	})
}

// Loss makes each of these hosts lose so many percent of the packets that it receives, from whomever; 0 ends
// it.
func (l *Lab) Loss(percent int, names ...string) error {
	return l.change(func(f *faults) error {
		if percent < 0 || percent > 100 {
			return fmt.Errorf("lab: a loss of %d %%: it must be from 0 to 100", percent)
		}
		for _, name := range names {
			f.loss[name] = percent
		}
		return l.known(names...)
	})
}

// HealLinks ends all cuts between hosts and all loss; hosts that are cut off from the lease store stay so.
func (l *Lab) HealLinks() error {
	return l.change(func(f *faults) error {
		clear(f.cut)
		clear(f.loss)
		return nil
	})
}

// Heal ends all faults of the network.
func (l *Lab) Heal() error {
	return l.change(func(f *faults) error {
		*f = newFaults()
		return nil
	})
}

// Flap cuts by calling cut, heals the links after down, cuts again after up more, and so on until ctx ends;
// then the links are healed.
func (l *Lab) Flap(ctx context.Context, down, up time.Duration, cut func() error) error {
	for {
		if err := cut(); err != nil {
			return errors.Join(err, l.HealLinks())
		}
		on := slept(ctx, down)
		if err := l.HealLinks(); err != nil || !on || !slept(ctx, up) {
			return err
		}
	}
}

// slept waits for d; false: ctx ended first.
func slept(ctx context.Context, d time.Duration) bool { return sleep.For(ctx, d) == nil }
