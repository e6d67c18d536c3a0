package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func mustEncode(t testing.TB, r lease.Record) []byte {
	t.Helper()
	text, err := encode(r)
	require.NoError(t, err)
	return text
}

func TestRecord_IsForPeople(t *testing.T) {
	text := string(mustEncode(t, record("n1@1", 7)))
	for _, line := range []string{
		`  "format": 1,`, `  "holder": "n1@1",`, `  "token": 7,`, `  "ttl": "1m30s",`,
		`  "renewed": "2026-11-21T13:35:14.123456789Z",`,
		`    "decided-by": "n1@1",`, `    "reason": "n3 is \"cut off\": <2> of 3 survive – größer, 多数"`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	require.True(t, strings.HasSuffix(text, "\n}\n"))
}

func TestRecord_TwoWritesAreNeverEqual(t *testing.T) {
	require.NotEqual(t, mustEncode(t, record("a", 1)), mustEncode(t, record("a", 1)))
}

func TestRecord_RoundTrip(t *testing.T) {
	bare := lease.Record{Token: lease.MaxToken}
	zone := record("a", 2)
	zone.Renewed = zone.Renewed.In(time.FixedZone("x", 3600))
	for _, r := range []lease.Record{{}, bare, record("a", 1), record("", 3), zone} {
		got, err := decode(mustEncode(t, r))
		require.NoError(t, err)
		require.True(t, r.Renewed.Equal(got.Renewed))
		r.Renewed = got.Renewed
		require.Equal(t, r, got)
	}
}

func TestRecord_WhatJSONWouldChangeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*lease.Record){
		"holder":   func(r *lease.Record) { r.Holder = "a\xff" },
		"survivor": func(r *lease.Record) { r.Verdict.Survivors = []sbr.ID{"a\xff"} },
		"down":     func(r *lease.Record) { r.Verdict.Down = []sbr.ID{"a\xff"} },
		"reason":   func(r *lease.Record) { r.Verdict.Reason = "\xff" },
		"ttl":      func(r *lease.Record) { r.TTL = -1 },
		"token":    func(r *lease.Record) { r.Token = lease.MaxToken + 1 },
		"verdict":  func(r *lease.Record) { r.Verdict.Token = lease.MaxToken + 1 },
		"year":     func(r *lease.Record) { r.Renewed = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, newPath(t))
			r := record("a", 1)
			change(&r)
			_, err := s.Write(t.Context(), r, "")
			require.ErrorIs(t, err, lease.ErrRefused)
			require.Empty(t, names(t, s.path))
		})
	}
}

// Whatever hand or accident made it, a file that is there and is not a record is an error that names it, and
// never a free lease.
func TestRecord_DamageIsNeverFree(t *testing.T) {
	good := string(mustEncode(t, record("a", 1)))
	change := func(from, to string) string {
		require.Contains(t, good, from)
		return strings.Replace(good, from, to, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":               {"", "the file is empty"},
		"blank":               {" \n\n", "the file is empty"},
		"zeroes":              {strings.Repeat("\x00", 600), "not JSON"},
		"half":                {good[:len(good)/2], "cut off"},
		"no end":              {strings.TrimSuffix(good, "}\n"), "cut off"},
		"two of them":         {good + good, "not JSON"},
		"a list":              {"[]", "does not begin with {"},
		"null":                {"null", "does not begin with {"},
		"nothing in it":       {"{}", `"format" is missing`},
		"something else":      {`{"name": "x"}`, `"format" is missing`},
		"misspelt holder":     {change(`"holder"`, `"hodler"`), `"holder" is missing`},
		"one field too many":  {change(`"holder"`, `"owner": "b", "holder"`), `"owner" is unknown`},
		"another case":        {change(`"nonce"`, `"Nonce"`), `"Nonce" is unknown`},
		"twice":               {change(`"holder"`, `"holder": "", "holder"`), `"holder" is there twice`},
		"no token":            {change(`"token": 1,`, ``), `"token" is missing`},
		"null holder":         {change(`"holder": "a"`, `"holder": null`), `"holder": it is null`},
		"null verdict":        {`{"format": 1, "holder": "", "token": 1, "verdict": null}`, `"verdict": it is null`},
		"misspelt verdict":    {change(`"survivors"`, `"survivor"`), `"verdict"`},
		"token as text":       {change(`"token": 1`, `"token": "1"`), `"token"`},
		"negative token":      {change(`"token": 1`, `"token": -1`), `"token"`},
		"token too large":     {change(`"token": 1`, `"token": 18446744073709551616`), `"token"`},
		"ttl without unit":    {change(`"1m30s"`, `"90"`), `ttl "90"`},
		"negative ttl":        {change(`"1m30s"`, `"-90s"`), "negative"},
		"time as number":      {change(`"2026-11-21T13:35:07.123456789Z"`, `5`), `"acquired"`},
		"not UTF-8":           {change("größer", "gr\xf6\xdfer"), "UTF-8"},
		"byte order mark":     {"\ufeff" + good, "not JSON"},
		"format 0":            {change(`"format": 1`, `"format": 0`), "format 0 is unknown"},
		"format as text":      {change(`"format": 1`, `"format": "1"`), `"format"`},
		"a newer format":      {`{"format": 4, "holder": ["a"]}`, "newer version"},
		"too large to be one": {good + strings.Repeat(" ", maxSize), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, newPath(t))
			mustWriteFile(t, s.path, c.text)
			got, err := s.Read(t.Context())
			require.ErrorIs(t, err, ErrBadRecord)
			oneLine(t, s, err, c.want)
			require.Zero(t, got)
			require.Equal(t, name == "a newer format", strings.Contains(err.Error(), "upgrade this program"))

			for _, prev := range []lease.Version{"", "0123"} {
				_, err = s.Write(t.Context(), record("b", 2), prev)
				require.ErrorIs(t, err, lease.ErrConflict, "nor is it overwritten")
			}
			require.Equal(t, c.text, mustReadFile(t, s.path))
			require.ErrorIs(t, s.Preflight(t.Context()), ErrBadRecord)
		})
	}
}

func TestRecord_AnErrorIsShorterThanTheFile(t *testing.T) {
	long := strings.Repeat("多\\n", 50_000)
	for _, text := range []string{
		`{"format": 1, "holder": "", "token": 1, "` + long + `": 1}`,
		`{"format": 1, "holder": "", "token": 1, "ttl": "` + long + `"}`,
		`{"format": 1, "holder": "", "token": 1, "renewed": "` + long + `"}`,
		`{"format": 1, "holder": "", "token": ` + strings.Repeat("1", 50_000) + `}`,
		`{"format": 1, "holder": "", "token": 1, "verdict": {"` + long + `": 1}}`,
	} {
		s := newStore(t, newPath(t))
		mustWriteFile(t, s.path, text)
		_, err := s.Read(t.Context())
		require.ErrorIs(t, err, ErrBadRecord)
		oneLine(t, s, err, "…")
		require.Less(t, len(err.Error()), 800)
	}
}

func TestRecord_NoBeginningOfARecordIsOne(t *testing.T) {
	text := bytes.TrimSpace(mustEncode(t, record("a", 1)))
	for n := range text {
		_, err := decode(text[:n])
		require.ErrorIs(t, err, ErrBadRecord, "%s", text[:n])
	}
}

func TestRecord_WhatAHandMayWrite(t *testing.T) {
	got, err := decode([]byte(`{"holder":"","token":4,"format":1,"verdict":{"token":4,"survivors":["b","a"]}}`))
	require.NoError(t, err)
	require.Equal(t, lease.Record{Token: 4, Verdict: &sbr.Verdict{Token: 4, Survivors: []sbr.ID{"a", "b"}}},
		got, "lists are put in order")
}

func TestRecord_TooLarge(t *testing.T) {
	s := newStore(t, newPath(t))
	first := mustWrite(t, s, record("a", 1), "")
	r := record("a", 2)
	for i := range 20_000 {
		r.Verdict.Down = append(r.Verdict.Down, sbr.ID(fmt.Sprintf("payments-7d4b9c6f5d-%05d@%013d", i, i)))
	}
	large := mustWrite(t, s, r, first.Version)
	for i := range 4_000 {
		r.Verdict.Down = append(r.Verdict.Down, sbr.ID(fmt.Sprintf("payments-7d4b9c6f5d-%05d@%013d", i, i)))
	}
	_, err := s.Write(t.Context(), r, large.Version)
	require.ErrorIs(t, err, lease.ErrTooLarge)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.Equal(t, large.Version, mustRead(t, s).Version)
}

// What decodes is the same after another trip, and a holder is empty only where the text says so.
func FuzzDecode(f *testing.F) {
	good := mustEncode(f, record("a", 1))
	f.Add(good)
	f.Add(good[:len(good)-20])
	f.Add([]byte(`{"format":1,"holder":"","token":0}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"format":1,"holder":"\ud800","token":1,"ttl":"1h","verdict":{"survivors":[]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decode(text)
		if err != nil {
			require.ErrorIs(t, err, ErrBadRecord)
			require.Zero(t, r)
			return
		}
		if r.Holder == "" {
			require.Contains(t, unescaped(t, text), `"holder"`)
		}
		again, err := encode(r)
		require.NoError(t, err)
		got, err := decode(again)
		require.NoError(t, err)
		require.True(t, r.Renewed.Equal(got.Renewed) && r.Acquired.Equal(got.Acquired))
		got.Renewed, got.Acquired = r.Renewed, r.Acquired
		if r.Verdict != nil {
			r.Verdict.Survivors, r.Verdict.Down = append([]sbr.ID{}, r.Verdict.Survivors...),
				append([]sbr.ID{}, r.Verdict.Down...)
			got.Verdict.Survivors, got.Verdict.Down = append([]sbr.ID{}, got.Verdict.Survivors...),
				append([]sbr.ID{}, got.Verdict.Down...)
		}
		require.Equal(t, r, got)
	})
}

// unescaped is the keys of a JSON object as they are meant ("\u0068older" is a holder).
func unescaped(t *testing.T, text []byte) string {
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &fields))
	var keys strings.Builder
	for name := range fields {
		fmt.Fprintf(&keys, "%q ", name)
	}
	return keys.String()
}

// Members of earlier versions read records of format 1 alone. So a record has the newer format only while it
// lists members that have left: a new verdict, or a record without one, is theirs again.
func TestRecord_FormatOfLeaves(t *testing.T) {
	r := lease.Record{Token: 4, Verdict: &sbr.Verdict{Token: 4, Survivors: []sbr.ID{"a", "b"}}}
	text, err := encode(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"format": 1,`)
	require.NotContains(t, string(text), "left")
	r.Verdict.Left, r.Verdict.Heirs = []sbr.ID{"b", "a"}, []sbr.ID{"c"}
	text, err = encode(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"format": 2,`)
	got, err := decode(text)
	require.NoError(t, err)
	require.Equal(t, r.Verdict, got.Verdict)
}

// A file as earlier versions of this program have written it.
func TestRecord_OfEarlierVersions(t *testing.T) {
	const earlier = `{
  "format": 1,
  "write": "YRKWCMMVHAQLCCJPSSDGW6JUQH",
  "holder": "a",
  "token": 1,
  "nonce": "nonce-a-1",
  "ttl": "1m30s",
  "acquired": "2026-11-21T13:35:07.123456789Z",
  "renewed": "2026-11-21T13:35:08.123456789Z",
  "verdict": {
    "token": 1,
    "survivors": [
      "n1@1",
      "n2@1"
    ],
    "down": [
      "n3@1"
    ],
    "decided-by": "n1@1",
    "reason": "n3 is \"cut off\": <2> of 3 survive – größer, 多数"
  }
}
`
	r, err := decode([]byte(earlier))
	require.NoError(t, err)
	require.Equal(t, record("a", 1), r)
	write := regexp.MustCompile(`"write": "[A-Z2-7]{26}"`)
	require.Equal(t, write.ReplaceAllString(earlier, ""), write.ReplaceAllString(string(mustEncode(t, r)), ""),
		"and they read this one's")
}
