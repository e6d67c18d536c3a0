package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/serf-sbr/serf-sbr/lease"
)

// brokenStores break the contract of a Store one time out of three, each in its own way.
var brokenStores = map[string]func(lease.Store, chance) lease.Store{
	"says OK to a write that conflicts": func(s lease.Store, luck chance) lease.Store {
		return broken{Store: s, write: func(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
			got, err := s.Write(ctx, r, prev)
			if errors.Is(err, lease.ErrConflict) && luck.below(3) == 0 {
				return "made up", nil
			}
			return got, err
		}}
	},
	"says OK and writes nothing": func(s lease.Store, luck chance) lease.Store {
		return broken{Store: s, write: func(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
			if luck.below(3) == 0 {
				return "made up", nil
			}
			return s.Write(ctx, r, prev)
		}}
	},
	"overwrites whatever is there": func(s lease.Store, luck chance) lease.Store {
		return broken{Store: s, write: func(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
			if now, err := s.Read(ctx); err == nil && luck.below(3) == 0 {
				prev = now.Version
			}
			return s.Write(ctx, r, prev)
		}}
	},
	"writes, and says that it refused": func(s lease.Store, luck chance) lease.Store {
		return broken{Store: s, write: func(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
			got, err := s.Write(ctx, r, prev)
			if err == nil && luck.below(3) == 0 {
				return "", fmt.Errorf("made up: %w", lease.ErrRefused)
			}
			return got, err
		}}
	},
	"reads from a cache": func(s lease.Store, luck chance) lease.Store {
		var cache struct {
			sync.Mutex
			lease.Snapshot
		}
		return broken{Store: s, read: func(ctx context.Context) (lease.Snapshot, error) {
			cache.Lock()
			defer cache.Unlock()
			if cache.Version != "" && luck.below(3) == 0 {
				return cache.Snapshot, nil
			}
			got, err := s.Read(ctx)
			if err == nil {
				cache.Snapshot = got
			}
			return got, err
		}}
	},
}

type broken struct {
	lease.Store
	read  func(context.Context) (lease.Snapshot, error)
	write func(context.Context, lease.Record, lease.Version) (lease.Version, error)
}

func (b broken) Read(ctx context.Context) (lease.Snapshot, error) {
	if b.read == nil {
		return b.Store.Read(ctx)
	}
	return b.read(ctx)
}

func (b broken) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	if b.write == nil {
		return b.Store.Write(ctx, r, prev)
	}
	return b.write(ctx, r, prev)
}
