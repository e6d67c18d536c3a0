package kubernetes

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/transport"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func nativeObject(r lease.Record, value string) *coordv1.Lease {
	l := &coordv1.Lease{Spec: toSpec(r)}
	l.Annotations = map[string]string{Annotation: value}
	return l
}

func members(n int) []sbr.ID {
	ids := make([]sbr.ID, n)
	for i := range ids {
		ids[i] = sbr.ID("payments-7d4b9c6f5d-" + strconv.Itoa(100000+i) + "@1700000000000")
	}
	return ids
}

func TestRecord_RoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
	for name, r := range map[string]lease.Record{
		"zero":         {},
		"all":          {Holder: "a", Token: 7, Nonce: "n", TTL: 1500 * time.Millisecond, Acquired: now, Renewed: now.Add(1), Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"a"}, Down: []sbr.ID{"b"}, DecidedBy: "a", Reason: `"quoted" <&>`, Partial: true}},
		"free":         {Token: 8, Nonce: "n", Verdict: &sbr.Verdict{Token: 7}},
		"nanosecond":   {TTL: 1},
		"for ages":     {TTL: math.MaxInt64, Token: lease.MaxToken},
		"zero verdict": {Verdict: &sbr.Verdict{}},
		"large":        {Holder: "a", Verdict: &sbr.Verdict{Survivors: members(5000)}},
	} {
		value, err := encode(r)
		require.NoError(t, err, name)
		got, err := fromLease(nativeObject(r, value))
		require.NoError(t, err, name)
		require.Equal(t, r, got, name)
		require.Equal(t, name != "large", strings.HasPrefix(value, "{"), name)
		again, err := encode(r)
		require.NoError(t, err)
		require.NotEqual(t, value, again, "each write must differ")
	}
}

func TestRecord_Spec(t *testing.T) {
	seconds := func(ttl time.Duration) int32 { return deref(toSpec(lease.Record{TTL: ttl}).LeaseDurationSeconds) }
	require.Nil(t, toSpec(lease.Record{}).LeaseDurationSeconds)
	require.EqualValues(t, 1, seconds(1))
	require.EqualValues(t, 2, seconds(2*time.Second))
	require.EqualValues(t, 3, seconds(2*time.Second+1))
	require.EqualValues(t, math.MaxInt32, seconds(math.MaxInt64))
	require.EqualValues(t, math.MaxInt32, *toSpec(lease.Record{Token: 1 << 40}).LeaseTransitions)
	require.Empty(t, *toSpec(lease.Record{}).HolderIdentity)
}

func TestRecord_TooLarge(t *testing.T) {
	_, err := encode(lease.Record{Holder: strings.Repeat("x", 9<<20)})
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.NotContains(t, err.Error(), "\n")
	r := lease.Record{Verdict: &sbr.Verdict{Survivors: members(20000)}}
	value, err := encode(r)
	require.NoError(t, err)
	require.Less(t, len(value), maxRecord)
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestDecode_Junk(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"empty":           {"", "neither JSON nor gzip"},
		"text":            {"hello", "neither JSON nor gzip"},
		"half JSON":       {`{"v":1`, "unexpected end"},
		"more than JSON":  {`{"v":1}x`, "invalid character"},
		"no format":       {`{}`, "format 0 is unknown"},
		"old format":      {`{"v":-1}`, "format -1 is unknown"},
		"newer format":    {`{"v":3,"token":"in words"}`, "format 3 is newer than this program"},
		"huge format":     {`{"v":1e99}`, "cannot unmarshal"},
		"negative token":  {`{"v":1,"token":-1}`, "cannot unmarshal"},
		"negative ttl":    {`{"v":1,"ttl":"-1s"}`, "it is negative"},
		"no ttl":          {`{"v":1,"ttl":"soon"}`, "invalid duration"},
		"verdict":         {`{"v":1,"verdict":[]}`, "cannot unmarshal"},
		"deep":            {`{"v":1,"verdict":` + strings.Repeat(`{"a":`, 20000), "exceeded max depth"},
		"base64 only":     {"aGVsbG8gd29ybGQ=", "gzip"},
		"half gzip":       {gzipped(strings.Repeat("x", 1000))[:20], "EOF"},
		"gzip of junk":    {gzipped("junk"), "invalid character"},
		"gzip bomb":       {gzipped(strings.Repeat(" ", maxPlain+1)), "when unpacked"},
		"gzip of a newer": {gzipped(`{"v":9}`), "newer"},
	} {
		_, _, err := decode(c.value)
		require.ErrorContains(t, err, c.want, name)
	}
}

func TestDecode_SortsWhatAHandHasEdited(t *testing.T) {
	p, _, err := decode(`{"v":1,"token":3,"verdict":{"token":3,"survivors":["b","a"],"down":["d","c"]},"new":"field"}`)
	require.NoError(t, err)
	require.Equal(t, []sbr.ID{"a", "b"}, p.Verdict.Survivors)
	require.Equal(t, sbr.Survivor, p.Verdict.Standing("a", 0))
}

func TestFromLease_WrittenByOthers(t *testing.T) {
	holder, seconds, transitions := "someone", int32(15), int32(4)
	l := &coordv1.Lease{Spec: coordv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}}
	r, err := fromLease(l)
	require.NoError(t, err)
	require.Equal(t, lease.Record{Holder: "someone", TTL: 15 * time.Second}, r)

	// The annotation was lost: the token must not start again.
	l.Spec.LeaseTransitions = &transitions
	r, err = fromLease(l)
	require.NoError(t, err)
	require.EqualValues(t, 4, r.Token)

	negative := int32(-5)
	l.Spec.LeaseTransitions, l.Spec.LeaseDurationSeconds = &negative, &negative
	r, err = fromLease(l)
	require.NoError(t, err)
	require.Equal(t, lease.Record{Holder: "someone"}, r)

	r, err = fromLease(&coordv1.Lease{})
	require.NoError(t, err)
	require.Equal(t, lease.Record{}, r)
}

func TestFromLease_HolderChangedByOthers(t *testing.T) {
	value, err := encode(lease.Record{Holder: "a", Token: 3, Nonce: "n", TTL: time.Minute,
		Verdict: &sbr.Verdict{Token: 3}})
	require.NoError(t, err)
	holder, transitions := "b", int32(4)
	l := &coordv1.Lease{Spec: coordv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions}}
	l.Annotations = map[string]string{Annotation: value}
	r, err := fromLease(l)
	require.NoError(t, err)
	require.Equal(t, lease.Record{Holder: "b", Token: 4, Verdict: &sbr.Verdict{Token: 3}}, r,
		"no nonce: a must not believe it holds the lease")
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"v":1,"token":3,"holder":"a","nonce":"n","ttl":"1.5s","write":"w","verdict":{"token":3,"survivors":["b","a"]}}`, "a", int32(3), int32(2))
	f.Add(gzipped(`{"v":1}`), "", int32(-1), int32(-1))
	f.Add("H4sI", "x", int32(math.MaxInt32), int32(math.MinInt32))
	f.Fuzz(func(t *testing.T, value, holder string, transitions, seconds int32) {
		l := &coordv1.Lease{Spec: coordv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions,
			LeaseDurationSeconds: &seconds}}
		l.Annotations = map[string]string{Annotation: value}
		r, err := fromLease(l)
		if err != nil {
			require.Equal(t, lease.Record{}, r)
			return
		}
		require.GreaterOrEqual(t, r.TTL, time.Duration(0))
		require.True(t, transitions < 0 || r.Token >= uint64(transitions), "the floor of the token")
		// What was read can be written and read again. (Not what no member writes: text that is not UTF-8.)
		again, err := encode(r)
		if err != nil {
			return
		}
		r2, err := fromLease(nativeObject(r, again))
		require.NoError(t, err)
		require.Equal(t, r, r2)
	})
}

// Annotations as earlier versions of this program have written them, and as those read them: by the names of
// fields, in any order.
func TestRecord_OfEarlierVersions(t *testing.T) {
	native := `{"v":1,"token":7,"holder":"a","nonce":"n","ttl":"1m30s","write":"YRKWCMMVHAQLC",` +
		`"verdict":{"token":7,"survivors":["a","b"],"down":["c"],"decided-by":"a","reason":"majority"}}`
	free := `{"v":1,"token":8,"nonce":"n","write":"YRKWCMMVHAQLD"}`
	custom := `{"v":1,"token":7,"holder":"a","nonce":"n","ttl":"1m30s","write":"YRKWCMMVHAQLC","time":1793540108123,` +
		`"acquired":"2026-11-01T12:35:07.123Z","renewed":"2026-11-01T12:35:08.123Z"}`
	for _, value := range []string{native, free, custom} {
		r, at, err := decode(value)
		require.NoError(t, err)
		p, err := payloadOf(r)
		require.NoError(t, err)
		p.Time = at
		now, err := p.pack()
		require.NoError(t, err)
		var was, is map[string]any
		require.NoError(t, json.Unmarshal([]byte(value), &was))
		require.NoError(t, json.Unmarshal([]byte(now), &is))
		delete(was, "write")
		delete(is, "write")
		if is["holder"] == "" {
			delete(is, "holder") // absent and empty are one to every version
		}
		require.Equal(t, was, is)
	}
}

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
	spec := toSpec(lease.Record{Renewed: far})
	require.Equal(t, 9999, spec.RenewTime.Year())
	r, err := fromLease(&coordv1.Lease{Spec: spec})
	require.NoError(t, err)
	require.Zero(t, r.Renewed, "a heartbeat is a later time, and there is none")
	_, err = json.Marshal(toSpec(lease.Record{Renewed: far, Acquired: far}))
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

// A stream that opens in the very moment in which its time is over is no stream: its request ends with the
// timer's function, which may not have run yet.
func TestWatch_OpenedTooLate(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		err, cause, want error
		inTime           bool
	}{
		"in time":                               {inTime: true},
		"failed in time":                        {err: refused, want: refused, inTime: true},
		"too late, the context knows":           {cause: errOpenTimeout, want: errOpenTimeout},
		"too late, the context does not know":   {want: errOpenTimeout},
		"too late, the watch had been given up": {cause: context.Canceled, want: errOpenTimeout},
		"failed because it was too late":        {err: context.Canceled, cause: errOpenTimeout, want: errOpenTimeout},
		"failed, and the time was over as well": {err: refused, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			got := notOpened(c.err, c.inTime, c.cause, time.Second)
			if c.want == nil {
				require.NoError(t, got)
				return
			}
			require.ErrorIs(t, got, c.want)
		})
	}
}

// HTTPS_PROXY and NO_PROXY count, unless the kubeconfig names a proxy.
func TestTransport_Proxy(t *testing.T) {
	same := func(want, got any) {
		t.Helper()
		require.Equal(t, reflect.ValueOf(want).Pointer(), reflect.ValueOf(got).Pointer())
	}
	made, err := newTransport(&transport.Config{DialHolder: &transport.DialHolder{}}, time.Second)
	require.NoError(t, err)
	same(http.ProxyFromEnvironment, made.Proxy)
	proxy := func(*http.Request) (*url.URL, error) { return nil, nil }
	made, err = newTransport(&transport.Config{DialHolder: &transport.DialHolder{}, Proxy: proxy}, time.Second)
	require.NoError(t, err)
	same(proxy, made.Proxy)
}

// With default times an API server whose answers take two seconds is slow, not gone: its connection is kept.
func TestTransport_ASlowNetworkIsNotADeadOne(t *testing.T) {
	request := DefaultConfig().RequestTimeout
	made, err := newTransport(&transport.Config{DialHolder: &transport.DialHolder{}}, roundTrip(request))
	require.NoError(t, err)
	require.GreaterOrEqual(t, made.TLSHandshakeTimeout, 2*time.Second)
	require.GreaterOrEqual(t, made.HTTP2.PingTimeout, 2*time.Second)
	require.Less(t, made.HTTP2.SendPingTimeout+made.HTTP2.PingTimeout, request, "a dead one is found out")
}
