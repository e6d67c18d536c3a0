package mongodb_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collections numbers the collections of a test.
var collections = struct {
	sync.Mutex
	made int
}{}

// newCollection makes a collection of its own for each test.
func (s *server) newCollection(t testing.TB) string {
	t.Helper()
	collections.Lock()
	collections.made++
	name := "leases" + strings.Repeat("i", collections.made)
	collections.Unlock()
	require.NoError(t, s.client(t, nil).Database("sbr").CreateCollection(t.Context(), name))
	return name
}

func (s *server) collection(t testing.TB, name string) *mongo.Collection {
	return s.client(t, nil).Database("sbr").Collection(name)
}

// store returns a store over a client of its own.
func (s *server) store(t testing.TB, collection string) *mongodb.Store {
	t.Helper()
	store, err := mongodb.New(s.collection(t, collection), "payments-sbr")
	require.NoError(t, err)
	return store
}

func TestConformance(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *server{"SQLite": newServer, "PostgreSQL": newOverPostgres} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			leasetest.Run(t, func(t *testing.T) leasetest.Harness {
				name := s.newCollection(t)
				return leasetest.Harness{
					Open: func(t testing.TB, _ string) lease.Store { return s.store(t, name) },
					Delete: func(t testing.TB) {
						_, err := s.collection(t, name).DeleteMany(t.Context(), bson.D{})
						require.NoError(t, err)
					},
					Interrupt: s.restart,
				}
			})
		})
	}
}

// What FerretDB ignores is asked for all the same.
func TestRequests_AskForWhatTheyNeed(t *testing.T) {
	s := newServer(t)
	var seen []bson.Raw
	client := s.client(t, func(command bson.Raw) { seen = append(seen, command) })
	store, err := mongodb.New(client.Database("sbr").Collection(s.newCollection(t)), "payments-sbr")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	version, err := store.Write(ctx, lease.Record{Holder: "a", Token: 1}, "")
	require.NoError(t, err)
	_, err = store.Write(ctx, lease.Record{Holder: "a", Token: 2}, version)
	require.NoError(t, err)
	_, err = store.Read(ctx)
	require.NoError(t, err)

	require.Len(t, seen, 3, "one request each")
	for i, name := range []string{"insert", "update", "find"} {
		require.NotEmpty(t, seen[i].Lookup(name), "%s", seen[i])
		assert.Positive(t, seen[i].Lookup("maxTimeMS").AsInt64(), name)
		assert.Empty(t, seen[i].Lookup("txnNumber"), "%s is not retried", name)
	}
	for _, write := range seen[:2] {
		assert.Equal(t, "majority", write.Lookup("writeConcern", "w").StringValue())
		assert.True(t, write.Lookup("writeConcern", "j").Boolean())
	}
	assert.Equal(t, "linearizable", seen[2].Lookup("readConcern", "level").StringValue())
}

// A person reads the document with a shell, and may repair it there: that is another version.
func TestDocument_IsForPeople(t *testing.T) {
	s := newServer(t)
	name := s.newCollection(t)
	store, hand := s.store(t, name), s.collection(t, name)
	version, err := store.Write(t.Context(), lease.Record{
		Holder: "n1#a", Token: 7, TTL: 2 * time.Minute,
		Verdict: &sbr.Verdict{Token: 7, Survivors: []sbr.ID{"n1#a"}, Down: []sbr.ID{"n2#b"}, DecidedBy: "n1#a", Reason: "n2 is cut off"},
	}, "")
	require.NoError(t, err)
	var document bson.D
	require.NoError(t, hand.FindOne(t.Context(), bson.D{}).Decode(&document))
	text, err := bson.MarshalExtJSON(document, false, false)
	require.NoError(t, err)
	assert.Regexp(t, `^{"_id":"payments-sbr","format":1,"write":"\w+","holder":"n1#a","token":7,"ttl":"2m0s","verdict":{"token":7,`+
		`"survivors":\["n1#a"\],"down":\["n2#b"\],"decided-by":"n1#a","reason":"n2 is cut off"}}$`, string(text))

	set := func(field string, value any) {
		_, err := hand.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "payments-sbr"}}, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: value}}}})
		require.NoError(t, err)
	}
	set("verdict.reason", "edited")
	_, err = store.Write(t.Context(), lease.Record{Token: 8}, version)
	require.ErrorIs(t, err, lease.ErrConflict)
	set("holdr", "n1#a")
	_, err = store.Read(t.Context())
	assert.ErrorIs(t, err, lease.ErrRefused)
	assert.ErrorContains(t, err, `"holdr" is unknown`)
	assert.ErrorContains(t, err, "sbr."+name+"/payments-sbr")
}

// What an error leaves open is in the fault matrix.
func TestErrors_SayWhatIsCertain(t *testing.T) {
	s := newServer(t)
	name := s.newCollection(t)
	store := s.store(t, name)
	_, err := mongodb.New(nil, "payments-sbr")
	require.ErrorContains(t, err, "a collection is required")
	_, err = mongodb.New(s.collection(t, name), "")
	require.ErrorContains(t, err, "the name of the lease is required")

	for _, version := range []lease.Version{"not a version", "\x05\x00\x00\x00\x00"} { // the second matches every document
		_, err = store.Write(t.Context(), lease.Record{Holder: "a", Token: 1}, version)
		assert.ErrorIs(t, err, lease.ErrRefused)
	}
	_, err = store.Write(t.Context(), lease.Record{Holder: "\xff", Token: 1}, "")
	assert.ErrorIs(t, err, lease.ErrRefused)
	huge := lease.Record{Token: 1, Verdict: &sbr.Verdict{Reason: strings.Repeat("x", 17<<20)}}
	_, err = store.Write(t.Context(), huge, "")
	assert.ErrorIs(t, err, lease.ErrTooLarge)
	assert.ErrorIs(t, err, lease.ErrRefused)
	assert.ErrorIs(t, store.Watch(t.Context(), func(lease.Snapshot) {}), errors.ErrUnsupported, "FerretDB has no change streams")

	require.NoError(t, store.Preflight(t.Context()))
	left, err := s.collection(t, name).CountDocuments(t.Context(), bson.D{})
	require.NoError(t, err)
	require.Zero(t, left, "it changes nothing")
	risks, err := store.Risks(t.Context())
	require.NoError(t, err)
	require.Len(t, risks, 1)
	assert.Contains(t, risks[0], "no replica set")
	nowhere := s.store(t, "absent")
	assert.ErrorIs(t, nowhere.Preflight(t.Context()), lease.ErrRefused)
	assert.ErrorContains(t, nowhere.Preflight(t.Context()), `createCollection("absent")`)
	one, err := store.Identity(t.Context())
	require.NoError(t, err)
	other, err := s.store(t, s.newCollection(t)).Identity(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, one, other)
}

func TestFactory(t *testing.T) {
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "uri")
	require.NoError(t, os.WriteFile(file, []byte(s.URI()+"\n"), 0o600))
	t.Setenv(mongodb.URIVariable, s.URI())
	for name, set := range map[string]map[string]string{
		"a URI": {"uri": s.URI(), "database": "sbr"}, "in a file": {"uri-file": file, "database": "sbr"}, "in the environment": {"database": "sbr"},
	} {
		store, err := open(t, set)
		require.NoError(t, err, name)
		_, err = store.Read(t.Context())
		require.NoError(t, err, name)
		assert.Equal(t, "sbr.sbr_leases/payments-sbr", store.String())
		require.NoError(t, store.Close())
		_, err = store.Read(t.Context())
		require.ErrorIs(t, err, mongo.ErrClientDisconnected, name)
	}
	t.Setenv(mongodb.URIVariable, "")
	for says, set := range map[string]map[string]string{
		"set lease.mongodb.uri-file": {"database": "sbr"},
		"uri-file are set":           {"database": "sbr", "uri": s.URI(), "uri-file": file},
		"database is required":       {"uri": s.URI()},
		"uri-file: open":             {"database": "sbr", "uri-file": file + "x"},
		"is not valid":               {"database": "sbr", "uri": "mongodb://sbr:secret@:x:y"},
		"scheme must be":             {"database": "sbr", "uri": "http://sbr:secret@mongo"},
		"unescaped":                  {"database": "sbr", "uri": "mongodb://sbr:sec/ret@mongo"},
	} {
		_, err := open(t, set)
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "secret")
		assert.NotContains(t, err.Error(), "sec/ret")
	}
}

func open(t *testing.T, set map[string]string) (*mongodb.Store, error) {
	t.Helper()
	opened, err := lease.Open(t.Context(), mongodb.Key, lease.Spec{System: "payments", Decode: func(into any) error {
		text, err := bson.MarshalExtJSON(set, false, false)
		require.NoError(t, err)
		return json.Unmarshal(text, into)
	}})
	if err != nil {
		return nil, err
	}
	return opened.(*mongodb.Store), nil
}
