package kubernetes

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordv1 "k8s.io/api/coordination/v1"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// stored is what the server makes of a draft.
func stored(t *testing.T, d draft, generation int64) *customLease {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{Annotation: d.annotation}, "generation": generation}, "spec": d.spec,
	})
	require.NoError(t, err)
	l := &customLease{}
	require.NoError(t, json.Unmarshal(raw, l))
	return l
}

func TestCustomRecord_RoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for name, r := range map[string]lease.Record{
		"zero":    {},
		"all":     {Holder: "a", Token: 7, Nonce: "n", TTL: 1500 * time.Millisecond, Acquired: now, Renewed: now.Add(1), Verdict: &sbr.Verdict{Token: 7, DecidedBy: "a"}},
		"free":    {Token: 8, Nonce: "n", Renewed: now, Verdict: &sbr.Verdict{Token: 7}},
		"forever": {Holder: "a", TTL: math.MaxInt64, Token: lease.MaxToken},
	} {
		d, err := custom{}.encode(r, "")
		require.NoError(t, err, name)
		l := stored(t, d, 99)
		got, err := custom{}.decode(l)
		require.NoError(t, err, name)
		require.Equal(t, r, got, name)
		require.Equal(t, millis(r.Renewed), d.spec["time"])

		again, err := custom{}.encode(r, custom{}.mark(l))
		require.NoError(t, err, name)
		require.Equal(t, millis(r.Renewed)+1, again.spec["time"], "the spec must change: %s", name)
		got, err = custom{}.decode(stored(t, again, 99))
		require.NoError(t, err, name)
		require.Equal(t, r, got, "and the record must not: %s", name)
	}
	_, err := custom{}.encode(lease.Record{Holder: "\xff"}, "")
	require.ErrorContains(t, err, "not valid UTF-8")
	_, err = custom{}.decode(&coordv1.Lease{})
	require.ErrorContains(t, err, "it is a *v1.Lease")
	_, err = native{}.decode(&customLease{})
	require.ErrorContains(t, err, "it is a *kubernetes.customLease")
}

// Whatever stands in the spec, the record can be read, and what was read can be written.
func TestCustomRecord_StrangeSpecs(t *testing.T) {
	year := func(r lease.Record) int { return r.Renewed.Year() }
	for spec, check := range map[string]func(lease.Record) bool{
		`{}`:                             func(r lease.Record) bool { return r.Holder == "" && r.Renewed.IsZero() },
		`null`:                           func(r lease.Record) bool { return r.Holder == "" },
		`{"owner":null,"time":null}`:     func(r lease.Record) bool { return r.Holder == "" && r.Renewed.IsZero() },
		`{"owner":7}`:                    func(r lease.Record) bool { return r.Holder == "7" },
		`{"owner":{"name":"a"}}`:         func(r lease.Record) bool { return r.Holder == `{"name":"a"}` },
		`{"owner":"a","time":"soon"}`:    func(r lease.Record) bool { return r.Holder == "a" && r.Renewed.IsZero() },
		`{"owner":"a","time":1.5e12}`:    func(r lease.Record) bool { return year(r) == 2017 },
		`{"owner":"a","time":-7}`:        func(r lease.Record) bool { return r.Renewed.IsZero() },
		`{"owner":"a","time":1e300}`:     func(r lease.Record) bool { return year(r) == 9999 },
		`{"owner":"a","time":-1e300}`:    func(r lease.Record) bool { return r.Renewed.IsZero() },
		`{"time":9223372036854775807}`:   func(r lease.Record) bool { return year(r) == 9999 },
		`{"time":99999999999999999999}`:  func(r lease.Record) bool { return year(r) == 9999 },
		`{"time":-99999999999999999999}`: func(r lease.Record) bool { return r.Renewed.IsZero() },
	} {
		l := &customLease{}
		require.NoError(t, json.Unmarshal([]byte(`{"spec":`+spec+`}`), l), spec)
		l.Generation = -3
		r, err := custom{}.decode(l)
		require.NoError(t, err, spec)
		require.True(t, check(r), "%s: %+v", spec, r)
		require.Zero(t, r.Token)
		r.Renewed = r.Renewed.Add(time.Millisecond) // a release
		_, err = custom{}.encode(r, custom{}.mark(l))
		require.NoError(t, err, spec)
	}
}

func TestRecord_TimesBeyondTheYear9999(t *testing.T) {
	far := time.Unix(1<<40, 0)
	require.Equal(t, 9999, toSpec(lease.Record{Renewed: far}).RenewTime.Year())
	_, err := json.Marshal(toSpec(lease.Record{Renewed: far, Acquired: far}))
	require.NoError(t, err)
	d, err := custom{}.encode(lease.Record{Renewed: far, Acquired: far}, "")
	require.NoError(t, err)
	require.Equal(t, latest.UnixMilli(), d.spec["time"])
}

func FuzzCustomDecode(f *testing.F) {
	d, err := custom{}.encode(lease.Record{Holder: "a", Token: 3, Nonce: "n", Renewed: time.UnixMilli(5)}, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d.annotation, `{"owner":"a","time":5}`, int64(9))
	f.Add(`{"v":1,"token":3,"holder":"a","time":5}`, `{"owner":"a","time":5}`, int64(2))
	f.Add("junk", `{"owner":null,"time":-1e99}`, int64(-1))
	f.Fuzz(func(t *testing.T, value, spec string, generation int64) {
		l := &customLease{}
		if json.Unmarshal([]byte(`{"spec":`+spec+`}`), l) != nil {
			return
		}
		l.Generation = generation
		l.Annotations = map[string]string{Annotation: value}
		r, err := custom{}.decode(l)
		if err != nil {
			require.Equal(t, lease.Record{}, r)
			return
		}
		if r.Nonce == "" && r.TTL == 0 && generation > 0 && r.Acquired.IsZero() && value == "" {
			require.GreaterOrEqual(t, r.Token, uint64(generation))
		}
		again, err := custom{}.encode(r, custom{}.mark(l))
		if err != nil {
			return // text that is not UTF-8
		}
		require.NotEqual(t, int64(l.Spec.Time), again.spec["time"], "the spec must change")
		r2, err := custom{}.decode(stored(t, again, generation))
		require.NoError(t, err)
		require.Equal(t, r.Holder, r2.Holder)
		require.Equal(t, r.Token, r2.Token)
		require.Equal(t, r.Verdict, r2.Verdict)
	})
}
