package downing_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// An unknown provider is an error that names the known ones.
func TestRegistry_UnknownProvider(t *testing.T) {
	_, err := downing.New(downing.Config{Provider: "split-brain-resolvr"})
	require.ErrorIs(t, err, downing.ErrUnknownProvider)
	require.ErrorContains(t, err, `"split-brain-resolvr": known are`)
	for _, key := range []string{downing.NoDowning, downing.SplitBrainResolver} {
		require.ErrorContains(t, err, key)
	}
	_, err = downing.New(downing.Config{})
	require.ErrorIs(t, err, downing.ErrUnknownProvider, "the zero Config names none")
}

// The provider "none" needs nothing, changes nothing and downs nobody.
func TestRegistry_None(t *testing.T) {
	p, err := downing.New(downing.Config{Provider: downing.NoDowning})
	require.NoError(t, err)
	conf := serf.DefaultConfig()
	require.NoError(t, p.Prepare(t.Context(), conf))
	require.Nil(t, conf.EventCh)
	require.Nil(t, conf.Merge)
	require.Empty(t, conf.Tags)
	require.NoError(t, p.Start(t.Context(), nil))
	require.Equal(t, "none", string(p.Status().State))
	require.NoError(t, p.Stop(t.Context()))
	select {
	case <-p.Downed():
		t.Fatal("it downed somebody")
	default:
	}
	require.Empty(t, p.Reason())
}

// A key is registered once, with a factory.
func TestRegister_Misuse(t *testing.T) {
	f := func(downing.Config, *downing.Lifecycle) (downing.Engine, error) { return nil, nil }
	require.Panics(t, func() { downing.Register("", f) })
	require.Panics(t, func() { downing.Register("test-nil", nil) })
	require.Panics(t, func() { downing.Register(downing.NoDowning, f) })
	_, err := downing.New(downing.Config{Provider: "test-nil"})
	require.ErrorIs(t, err, downing.ErrUnknownProvider)
}

var keys atomic.Int64

// newKey returns a key that is free, also when the tests run several times.
func newKey() string { return fmt.Sprintf("test-%d", keys.Add(1)) }

// ownEngine is a provider as an embedder may write one.
type ownEngine struct {
	cfg   downing.Config
	life  *downing.Lifecycle
	calls []string
}

func (o *ownEngine) Prepare(context.Context, *serf.Config) error {
	o.calls = append(o.calls, "prepare")
	return nil
}

func (o *ownEngine) Start(context.Context, *serf.Serf) error {
	o.calls = append(o.calls, "start")
	o.life.Suspend("a doubt")
	o.life.Resume("none any more")
	o.life.Down("because", func(time.Time) { o.calls = append(o.calls, "leave") })
	return nil
}

func (o *ownEngine) Stop(context.Context) error { o.calls = append(o.calls, "stop"); return nil }

func (o *ownEngine) Status() downing.Status { return downing.Status{System: o.cfg.System} }

// An embedder's own provider is found by its key, gets the configuration, and reports through the same
// lifecycle.
func TestRegister_OwnProvider(t *testing.T) {
	var own *ownEngine
	key := newKey()
	downing.Register(key, func(cfg downing.Config, life *downing.Lifecycle) (downing.Engine, error) {
		own = &ownEngine{cfg: cfg, life: life}
		return own, nil
	})
	exited := make(chan int, 1)
	p, err := downing.New(downing.Config{Provider: key, System: "payments", Grace: time.Minute, Exit: func(s int) { exited <- s }})
	require.NoError(t, err)
	require.NoError(t, p.Prepare(t.Context(), nil))
	require.NoError(t, p.Start(t.Context(), nil))
	<-p.Done()
	require.Equal(t, downing.ExitDowned, <-exited)
	require.Equal(t, "because", p.Reason())
	require.Equal(t, "payments", p.Status().System)
	require.NoError(t, p.Stop(t.Context()))
	require.Equal(t, []string{"prepare", "start", "leave", "stop"}, own.calls)
}

// A factory that fails, or makes nothing, is an error of New and not a surprise later.
func TestRegister_FactoryFails(t *testing.T) {
	broken := errors.New("no licence")
	brokenKey, emptyKey := newKey(), newKey()
	downing.Register(brokenKey, func(downing.Config, *downing.Lifecycle) (downing.Engine, error) { return nil, broken })
	downing.Register(emptyKey, func(downing.Config, *downing.Lifecycle) (downing.Engine, error) { return nil, nil })
	_, err := downing.New(downing.Config{Provider: brokenKey})
	require.ErrorIs(t, err, broken)
	_, err = downing.New(downing.Config{Provider: emptyKey})
	require.ErrorContains(t, err, emptyKey)
}
