package kubernetes_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// put replaces the whole object as Akka does: name and resourceVersion, nothing else.
func (w realWorld) put(t *testing.T, spec any) {
	t.Helper()
	metadata := object{"name": testName, "resourceVersion": kubefake.Meta(w.stored(t))["resourceVersion"]}
	w.do(t, http.MethodPut, w.leases()+"/"+testName, object{
		"apiVersion": w.api.Group() + "/v1", "kind": "Lease", "metadata": metadata, "spec": spec,
	}, 200)
}

// What the token rests on, asked of a real server: the generation grows with each change of the spec and only
// then, nobody can set it, and it starts again with a new object.
func TestCustom_GenerationOfTheServer(t *testing.T) {
	w := newCustomWorld(t, kubetest.Shared(t), kubernetes.Akka)
	w.apply(t, object{"metadata": object{"generation": 77}, "spec": object{"owner": "a", "time": 1}})
	require.EqualValues(t, 1, w.generation(t), "not for the creator to choose")
	w.apply(t, object{"metadata": object{"annotations": object{"note": "x"}, "labels": object{"l": "x"}}})
	require.EqualValues(t, 1, w.generation(t), "metadata does not count")
	w.apply(t, object{"spec": object{"time": 2}})
	require.EqualValues(t, 2, w.generation(t))
	w.put(t, object{"owner": "a", "time": 3})
	require.EqualValues(t, 3, w.generation(t))
	require.Nil(t, kubefake.Meta(w.stored(t))["annotations"], "their write drops annotations")
	require.Nil(t, kubefake.Meta(w.stored(t))["labels"], "and labels")
	w.put(t, object{"owner": "a", "time": 3})
	require.EqualValues(t, 3, w.generation(t), "nothing has changed")
	w.apply(t, object{"metadata": object{"generation": 1}})
	require.EqualValues(t, 3, w.generation(t), "it cannot be lowered")
	w.remove(t)
	w.apply(t, object{"spec": object{"owner": "a", "time": 4}})
	require.EqualValues(t, 1, w.generation(t), "a new object starts again")
}

func TestCustom_TheTokenNeverFallsBehindTheGeneration(t *testing.T) {
	w := newCustomWorld(t, kubetest.Shared(t), kubernetes.Akka)
	s := w.store(t)
	// Every write counts, also one of the same owner in the same millisecond.
	prev := lease.Version("")
	for token := range uint64(20) {
		r := record("a", token+1)
		r.Renewed = record("a", 1).Renewed
		prev = mustWrite(t, s, r, prev).Version
		require.GreaterOrEqual(t, w.generation(t), token+1)
	}
	last := uint64(20)
	for i := range 3 {
		w.put(t, object{"owner": "akka", "time": time.Now().UnixMilli() + int64(i)})
		got, err := s.Read(t.Context())
		require.NoError(t, err)
		require.Greater(t, got.Record.Token, last)
		last = got.Record.Token
		prev = got.Version
	}
	mine := mustWrite(t, s, record("a", last+1), prev)
	require.Equal(t, last+1, mine.Record.Token)
	require.GreaterOrEqual(t, w.generation(t), last+1)
}

func TestCustom_WhatOthersWrote(t *testing.T) {
	w := newCustomWorld(t, kubetest.Shared(t), kubernetes.Pekko)
	s := w.store(t)
	first := mustWrite(t, s, record("a", 1), "")
	seen := func() lease.Record {
		t.Helper()
		got, err := s.Read(t.Context())
		require.NoError(t, err)
		return got.Record
	}
	require.Equal(t, record("a", 1), seen())
	w.apply(t, object{"metadata": object{"labels": object{"team": "a"}, "annotations": object{"note": "mine"}}})
	require.Equal(t, record("a", 1), seen(), "labels and annotations are not ours")

	at := record("a", 1).Renewed.Truncate(time.Millisecond)
	w.apply(t, object{"spec": object{"owner": "b"}})
	require.Equal(t, lease.Record{Holder: "b", Token: w.generation(t), Renewed: at,
		Verdict: first.Record.Verdict}, seen(),
		"the annotation speaks of another owner: no nonce")
	w.apply(t, object{"spec": object{"owner": "a", "time": at.UnixMilli() + 1}})
	got := seen()
	require.Empty(t, got.Nonce, "the annotation speaks of another time")
	require.Equal(t, w.generation(t), got.Token)
	w.apply(t, object{"spec": object{"time": at.UnixMilli()}})
	require.Equal(t, record("a", 1).Nonce, seen().Nonce)

	w.put(t, object{"owner": "akka", "time": 1700000000000})
	require.Equal(t, lease.Record{Holder: "akka", Token: w.generation(t),
		Renewed: time.UnixMilli(1700000000000).UTC()}, seen())
	for name, spec := range map[string]any{
		"empty owner": object{"owner": "", "time": 5}, "null owner": object{"owner": nil, "time": 6},
		"no owner": object{"time": 7}, "nothing": object{}, "null": nil,
	} {
		w.put(t, spec)
		require.Empty(t, seen().Holder, name)
	}
	present, err := s.Read(t.Context())
	require.NoError(t, err)
	mustWrite(t, s, record("a", present.Record.Token+1), present.Version)
	require.Nil(t, kubefake.Meta(w.stored(t))["labels"])
}

// What an operator should know is said once, and again after it was well.
func TestCustom_SaysWhatItSees(t *testing.T) {
	w := newCustomWorld(t, kubetest.Shared(t), kubernetes.Akka)
	log := new(logtest.Log)
	cfg := w.config(w.kubeconfig)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	s := openStore(t, cfg)
	lines := func(text string) int {
		for range 3 {
			_, err := s.Read(t.Context())
			require.NoError(t, err)
		}
		return strings.Count(log.String(), text)
	}
	const dropped, senseless = "held by another program", "makes no sense"
	mustWrite(t, s, record("a", 1), "")
	w.put(t, object{"owner": "", "time": 0})
	require.Zero(t, lines("lease"))
	w.put(t, object{"owner": "akka", "time": 1700000000000})
	require.Equal(t, 1, lines(dropped))
	w.put(t, object{"owner": "akka", "time": -1})
	require.Equal(t, 1, lines(senseless))
	require.Contains(t, log.String(), "owner=akka time=-1")
	w.put(t, object{"owner": "", "time": -1})
	require.Equal(t, 1, lines(senseless))
	w.put(t, object{"owner": "akka", "time": 1700000000001})
	require.Equal(t, 2, lines(dropped))
}

// A custom resource that is not installed is an error that says so, not a lease that is free.
func TestCustom_NotInstalled(t *testing.T) {
	const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/leases.pekko.apache.org"
	cluster := kubetest.New(t)
	w := realWorld{cluster: cluster, api: kubernetes.Pekko, namespace: cluster.Namespace(t),
		kubeconfig: cluster.AdminKubeconfig()}
	s := w.store(t)
	var err error
	missing := func() bool {
		err = s.Preflight(t.Context())
		return err != nil
	}
	require.True(t, missing())
	require.ErrorIs(t, err, kubernetes.ErrNotInstalled)
	require.ErrorContains(t, err, "install the CustomResourceDefinition leases.pekko.apache.org")
	require.NotContains(t, err.Error(), "\n")
	_, err = s.Read(t.Context())
	require.ErrorIs(t, err, kubernetes.ErrNotInstalled)
	_, err = s.Write(t.Context(), record("a", 1), "")
	require.ErrorIs(t, err, kubernetes.ErrNotInstalled)
	requireUnknown(t, err)
	l, err := lease.New(s, "a", lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := contextFor(t, 300*time.Millisecond)
	defer cancel()
	require.Equal(t, sbr.Unknown, linear.AnswerOf(l.Acquire(ctx, lease.Proposal{})).Kind)

	o := manifest.DefaultOptions()
	o.Namespace, o.Name, o.API, o.CRD, o.PreMade = w.namespace, testName, w.api, true, false
	w.install(t, o)
	require.Eventually(t, func() bool { return !missing() }, waitFor, 20*time.Millisecond, "%v", &err)
	present := mustWrite(t, s, record("a", 1), "")
	seen := watching(t, s)
	require.Equal(t, present, next(t, seen))

	w.do(t, http.MethodDelete, definition, nil, 200)
	require.Eventually(t, func() bool { return missing() && errors.Is(err, kubernetes.ErrNotInstalled) },
		waitFor, 20*time.Millisecond, "%v", &err)
	// The server ends streams when the definition begins to go, and then deletes its objects. A stream that
	// is open again in time shows that; afterwards the server says that nothing is installed, which is no
	// deletion.
	select {
	case snapshot := <-seen:
		require.Equal(t, lease.Snapshot{}, snapshot)
	case <-time.After(quietFor):
	}
	nothing(t, seen, quietFor)
}

func TestCustom_Window(t *testing.T) {
	open := func(api kubernetes.API) *kubernetes.Store {
		cfg := testConfig()
		cfg.API = api
		s, err := kubernetes.NewForConfig(kubefake.New(t).RESTConfig(), cfg)
		require.NoError(t, err)
		return s
	}
	settings := func(timeout, interval, operation time.Duration) lease.Settings {
		return lease.Settings{HeartbeatTimeout: timeout * time.Second, HeartbeatInterval: interval * time.Second,
			OperationTimeout: operation * time.Second}
	}
	for _, c := range []struct {
		settings lease.Settings
		want     time.Duration
		problem  string
	}{
		{lease.DefaultSettings(), 79 * time.Second, ""},
		{settings(100, 0, 5), 65 * time.Second, ""},
		{settings(40, 0, 5), 20 * time.Second, ""},
		{settings(30, 5, 5), 10 * time.Second, ""},
		{settings(29, 5, 5), 0, "leaves 9s to trust a heartbeat"},
		{settings(100, 49, 5), 0, "raise heartbeat-timeout"},
		{settings(12, 2, 60), 0, "must be at least 2 x heartbeat-interval"},
		{lease.Settings{HeartbeatTimeout: lease.Infinite, OperationTimeout: time.Second}, 0, "heartbeat-timeout is infinite"},
	} {
		for _, api := range []kubernetes.API{kubernetes.Akka, kubernetes.Pekko} {
			s := open(api)
			require.Equal(t, api, s.API())
			got, err := s.Window(c.settings)
			require.Equal(t, c.want, got)
			_, refused := lease.New(s, "a", c.settings, lease.Options{})
			if c.problem == "" {
				require.NoError(t, err)
				require.NoError(t, refused)
				continue
			}
			require.ErrorContains(t, err, c.problem)
			require.ErrorContains(t, refused, c.problem)
			require.NotContains(t, err.Error(), "\n")
		}
		native := open("")
		require.Equal(t, kubernetes.Native, native.API())
		got, err := native.Window(c.settings)
		require.NoError(t, err)
		require.Equal(t, c.settings.Window(), got)
	}
}
