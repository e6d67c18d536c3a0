package mongodb

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func open(t *testing.T, name, set string) *Store {
	t.Helper()
	s, err := lease.Open(t.Context(), Key, lease.Spec{System: "payments", Name: name,
		Decode: func(into any) error { return json.Unmarshal([]byte(set), into) }})
	require.NoError(t, err)
	return s.(*Store)
}

// A process has one client for all leases of one URI. It ends with the last of them.
func TestFactory_StoresShareAClient(t *testing.T) {
	client := func(s *Store) *mongo.Client { return s.records.Database().Client() }
	one := open(t, "one", `{"uri": "mongodb://127.0.0.1:1", "database": "sbr"}`)
	two := open(t, "two", `{"uri": "mongodb://127.0.0.1:1", "database": "other"}`)
	require.Same(t, client(one), client(two))
	require.Equal(t, "other.sbr_leases/two", two.String())
	another := open(t, "one", `{"uri": "mongodb://127.0.0.1:2", "database": "sbr"}`)
	require.NotSame(t, client(one), client(another))
	require.NoError(t, another.Close())
	require.NoError(t, one.Close())
	require.NoError(t, one.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := two.Read(ended)
	require.ErrorIs(t, err, context.Canceled, "one still uses it")
	require.NoError(t, two.Close())
	_, err = two.Read(ended)
	require.ErrorIs(t, err, mongo.ErrClientDisconnected)
}

// One record has one location, by whatever way a member gets there, and no other record has it.
func TestLocation(t *testing.T) {
	t.Parallel()
	at := func(name, set string) string {
		s := open(t, name, set)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s.Location()
	}
	where := at("one", `{"uri": "mongodb://a:1,b:2/?replicaSet=r", "database": "sbr"}`)
	require.Equal(t, "mongodb a:1,b:2, collection sbr.sbr_leases, lease one", where)
	for set, same := range map[string]bool{
		`{"uri": "mongodb://me:secret@b:2,a:1/?replicaSet=r&connectTimeoutMS=7", "database": "sbr"}`: true,
		`{"uri": "mongodb://a:1,b:2", "database": "sbr", "collection": "sbr_leases"}`:                true,
		`{"uri": "mongodb://a:1,b:3", "database": "sbr"}`:                                            false,
		`{"uri": "mongodb://a:1,b:2", "database": "other"}`:                                          false,
		`{"uri": "mongodb://a:1,b:2", "database": "sbr", "collection": "other"}`:                     false,
	} {
		require.Equal(t, same, at("one", set) == where, set)
	}
	require.NotEqual(t, where, at("two", `{"uri": "mongodb://a:1,b:2", "database": "sbr"}`))
	of := func() string {
		client, err := mongo.Connect(Options("mongodb://a:1", time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Disconnect(context.Background())) })
		records := client.Database("sbr").Collection("sbr_leases")
		one, err := New(records, "one")
		require.NoError(t, err)
		same, err := New(records.Clone(), "one")
		require.NoError(t, err)
		require.Equal(t, one.Location(), same.Location())
		return one.Location()
	}
	require.NotEqual(t, of(), of(), "a client of the caller's does not say where it connects to")
}

// A replacement carries the document before it, too: what could be written only once is not written at all.
func TestWrite_TooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, "one", `{"uri": "mongodb://127.0.0.1:1", "database": "sbr"}`)
	defer func() { require.NoError(t, s.Close()) }()
	record := func(size int) lease.Record {
		return lease.Record{Token: 1, Verdict: &sbr.Verdict{Reason: strings.Repeat("x", size)}}
	}
	_, err := s.Write(t.Context(), record(maxDocument), "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, err, lease.ErrTooLarge)
	largest, err := s.document(record(maxDocument - 1<<10))
	require.NoError(t, err)
	change, err := bson.Marshal(bson.D{{Key: "q", Value: largest}, {Key: "u", Value: largest}})
	require.NoError(t, err)
	require.Less(t, len(change), 16<<20, "what MongoDB takes")
}

// wire is a server of MongoDB's protocol. It answers a command by a document, or not at all.
type wire func(command string) bson.D

// DialContext implements options.ContextDialer.
func (w wire) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		for {
			size := make([]byte, 4)
			if _, err := io.ReadFull(server, size); err != nil {
				return
			}
			rest := make([]byte, binary.LittleEndian.Uint32(size)-4)
			if _, err := io.ReadFull(server, rest); err != nil {
				return
			}
			_, id, _, code, body, _ := wiremessage.ReadHeader(append(size, rest...))
			document := body[5:]             // after the flags and the kind of a section
			if code == wiremessage.OpQuery { //nolint:staticcheck // the first question of every driver
				document = body[4+bytes.IndexByte(body[4:], 0)+1+8:]
			}
			elements, err := bson.Raw(document).Elements()
			if err != nil {
				return
			}
			answer := w(elements[0].Key())
			if answer == nil {
				continue
			}
			raw, err := bson.Marshal(answer)
			if err != nil {
				return
			}
			at, reply := wiremessage.AppendHeaderStart(nil, 1, id, wiremessage.OpMsg)
			reply = wiremessage.AppendMsgSectionType(wiremessage.AppendMsgFlags(reply, 0), wiremessage.SingleDocument)
			reply = append(reply, raw...)
			binary.LittleEndian.PutUint32(reply[at:], uint32(len(reply)))
			if _, err := server.Write(reply); err != nil {
				return
			}
		}
	}()
	return client, nil
}

// A watch that has ended closes its stream. A server that does not answer that delays it by one operation.
func TestWatch_EndsAlthoughTheServerIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := Options("mongodb://n1/?directConnection=true&serverMonitoringMode=poll", time.Second)
		client, err := mongo.Connect(opts.SetDialer(wire(func(command string) bson.D {
			switch command {
			case "hello", "isMaster", "ismaster":
				return bson.D{{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true},
					{Key: "ismaster", Value: true}, {Key: "setName", Value: "rs0"}, {Key: "hosts", Value: bson.A{"n1"}},
					{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21},
					{Key: "logicalSessionTimeoutMinutes", Value: 30}}
			case "aggregate":
				return bson.D{{Key: "ok", Value: 1}, {Key: "cursor", Value: bson.D{{Key: "id", Value: int64(7)},
					{Key: "ns", Value: "sbr.sbr_leases"}, {Key: "firstBatch", Value: bson.A{}}}}}
			default: // find, killCursors
				return nil
			}
		})))
		require.NoError(t, err)
		s, err := New(client.Database("sbr").Collection("sbr_leases"), "payments-sbr")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Watch(ctx, func(lease.Snapshot) {}) }()
		synctest.Wait() // it reads
		cancel()
		time.Sleep(lease.DefaultSettings().OperationTimeout)
		synctest.Wait()
		require.Len(t, ended, 1)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.NoError(t, client.Disconnect(context.Background()))
	})
}
