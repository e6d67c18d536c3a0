package strategies

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Settings are the settings of all built-in strategies, as a configuration holds them. Only those of the
// selected one matter. Start from DefaultSettings: the zero Settings keeps a lone oldest member and gives the
// minority no delay.
type Settings struct {
	StaticQuorum  StaticQuorum
	KeepMajority  KeepMajority
	KeepOldest    KeepOldest
	KeepReferee   KeepReferee
	LeaseMajority LeaseMajority
}

// DefaultSettings returns the reference's defaults. The quorum size and the referee's address have none and
// must be set.
func DefaultSettings() Settings {
	return Settings{
		KeepOldest:  KeepOldest{DownIfAlone: true},
		KeepReferee: KeepReferee{DownAllIfLessThanNodes: 1},
		LeaseMajority: LeaseMajority{
			AcquireLeaseDelayForMinority: 2 * time.Second, IndirectlyConnected: KeepLargestGroup,
		},
	}
}

// ErrUnknown is returned, wrapped, by New for a key that names no strategy.
var ErrUnknown = errors.New("unknown strategy")

// builtin are the strategies by the keys of the configuration, each with its part of the settings.
var builtin = map[string]func(Settings) strategy{
	"keep-majority":  func(s Settings) strategy { return s.KeepMajority },
	"static-quorum":  func(s Settings) strategy { return s.StaticQuorum },
	"keep-oldest":    func(s Settings) strategy { return s.KeepOldest },
	"keep-referee":   func(s Settings) strategy { return s.KeepReferee },
	"down-all":       func(Settings) strategy { return DownAll{} },
	"lease-majority": func(s Settings) strategy { return s.LeaseMajority },
}

type strategy interface {
	sbr.Strategy
	Validate() error
}

// New returns the strategy of a key, whose case does not matter, with its part of the settings. Errors:
// ErrUnknown in one line with the known keys, or every problem of the selected strategy's settings, one line
// each.
func New(key string, settings Settings) (sbr.Strategy, error) {
	of, ok := builtin[strings.ToLower(key)]
	if !ok {
		return nil, fmt.Errorf("%w %q: known are %s", ErrUnknown, key, strings.Join(Keys(), ", "))
	}
	s := of(settings)
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// Keys returns the keys of the strategies in alphabetical order.
func Keys() []string { return slices.Sorted(maps.Keys(builtin)) }

func validRole(strategy, role string) error {
	if role != strings.TrimSpace(role) {
		return fmt.Errorf("%s.role is %q: it must not begin or end with a space", strategy, role)
	}
	return nil
}
