package lease_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestSettings_IntervalAsInTheReference(t *testing.T) {
	for _, c := range []struct{ timeout, interval, want time.Duration }{
		{120, 0, 12}, {100, 0, 10}, {40, 0, 5}, {100, 20, 20}, {10, 1, 1},
		{lease.Infinite / time.Second, 0, 12}, {lease.Infinite / time.Second, 20, 20},
	} {
		s := lease.Settings{HeartbeatTimeout: c.timeout * time.Second, HeartbeatInterval: c.interval * time.Second,
			OperationTimeout: time.Second}
		if c.timeout == lease.Infinite/time.Second {
			s.HeartbeatTimeout = lease.Infinite
		}
		require.NoError(t, s.Validate())
		assert.Equal(t, c.want*time.Second, s.Interval(), "%+v", c)
	}
}

func TestSettings_Validate(t *testing.T) {
	require.NoError(t, lease.DefaultSettings().Validate())
	base := lease.DefaultSettings()
	for name, c := range map[string]struct {
		change func(*lease.Settings)
		says   string
	}{
		"half the timeout":    {func(s *lease.Settings) { s.HeartbeatInterval = s.HeartbeatTimeout / 2 }, "less than half"},
		"floor above half":    {func(s *lease.Settings) { s.HeartbeatTimeout = 10 * time.Second }, "less than half"},
		"negative interval":   {func(s *lease.Settings) { s.HeartbeatInterval = -1 }, "heartbeat-interval is -1ns"},
		"no timeout":          {func(s *lease.Settings) { s.HeartbeatTimeout = 0 }, "heartbeat-timeout is 0s"},
		"negative timeout":    {func(s *lease.Settings) { s.HeartbeatTimeout = -time.Second }, "heartbeat-timeout is -1s"},
		"no operation time":   {func(s *lease.Settings) { s.OperationTimeout = 0 }, "lease-operation-timeout is 0s"},
		"negative operations": {func(s *lease.Settings) { s.OperationTimeout = -1 }, "lease-operation-timeout is -1ns"},
	} {
		s := base
		c.change(&s)
		assert.ErrorContains(t, s.Validate(), c.says, name)
	}
	all := lease.Settings{HeartbeatTimeout: -1, HeartbeatInterval: -1, OperationTimeout: -1}.Validate()
	require.Error(t, all)
	assert.Equal(t, 2, strings.Count(all.Error(), "\n"), "all problems at once: %v", all)
}

func TestSettings_Or(t *testing.T) {
	d := lease.Settings{HeartbeatTimeout: time.Minute, HeartbeatInterval: 7 * time.Second,
		OperationTimeout: 3 * time.Second}
	assert.Equal(t, d, lease.Settings{}.Or(d))
	assert.Equal(t, lease.Settings{HeartbeatTimeout: time.Minute, HeartbeatInterval: time.Second,
		OperationTimeout: 3 * time.Second},
		lease.Settings{HeartbeatInterval: time.Second}.Or(d))
	assert.Equal(t, lease.Settings{HeartbeatTimeout: 10 * time.Minute, OperationTimeout: time.Second},
		lease.Settings{HeartbeatTimeout: 10 * time.Minute, OperationTimeout: time.Second}.Or(d),
		"an interval belongs to its timeout: another timeout computes its own")
}

// The arithmetic that everything rests on: heartbeats fit into the window, and the window ends early enough
// for clocks whose rates differ by an eighth.
func TestSettings_WindowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := lease.Settings{
			HeartbeatTimeout:  time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "timeout")),
			HeartbeatInterval: time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "interval")),
			OperationTimeout:  time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(t, "operation")),
		}
		if s.Validate() != nil {
			t.Skip()
		}
		if s.Window() <= s.Interval() {
			t.Fatalf("a heartbeat is due after the window: %+v", s)
		}
		if rated := s.Window() + s.Window()/8; rated > s.HeartbeatTimeout {
			t.Fatalf("no room for clock rates: %+v", s)
		}
	})
}

func TestNew_ReportsAllProblems(t *testing.T) {
	_, err := lease.New(nil, "", lease.Settings{}, lease.Options{})
	require.Error(t, err)
	for _, says := range []string{"a store is required", "an owner is required", "heartbeat-timeout",
		"lease-operation-timeout"} {
		assert.ErrorContains(t, err, says)
	}
	l, err := lease.New(leasetest.NewMemory().View("a"), "a", lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	assert.Equal(t, "a", l.Owner())
	assert.Equal(t, lease.DefaultSettings(), l.Settings())
}

func TestOutcomeOf_IsUnknownUnlessItIsCertain(t *testing.T) {
	held := &lease.HeldError{Record: lease.Record{Holder: "x", Token: 3}}
	for want, errs := range map[sbr.Outcome][]error{
		sbr.Granted: {nil},
		sbr.Held:    {held, fmt.Errorf("waited: %w", held)},
		sbr.Unknown: {lease.ErrRefused, lease.ErrClosed, lease.ErrHeld, context.Canceled},
	} {
		for _, err := range errs {
			assert.Equal(t, want, lease.OutcomeOf(err), "%v", err)
		}
	}
	assert.ErrorIs(t, held, lease.ErrHeld)
	assert.EqualError(t, held, `lease: held by "x" (token 3)`)
	held.Superseded = true
	assert.EqualError(t, held, `lease: held: superseded by token 3 (holder "x")`)
}
