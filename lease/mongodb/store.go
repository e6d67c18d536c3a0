package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Store keeps a record as one document. It is safe for concurrent use.
type Store struct {
	// records reads linearizably and writes to the majority's journals; changes is the same collection for
	// change streams, which only show what a majority has.
	records, changes *mongo.Collection
	name             string
	servers          string // that the client connects to
	end              func() // ends the use of a client that is the Factory's; nil: it is the caller's
}

var (
	_ lease.Store      = (*Store)(nil)
	_ lease.Watcher    = (*Store)(nil)
	_ lease.Identified = (*Store)(nil)
	_ lease.Located    = (*Store)(nil)
	_ lease.DryRunner  = (*Store)(nil)
)

// New returns the store of the document with that _id. It sends nothing, and does not close the
// collection's client, which should be made from Options: this store sets its own read concern, write
// concern and read preference, but whether requests are retried is the client's.
func New(collection *mongo.Collection, name string) (*Store, error) {
	switch {
	case collection == nil:
		return nil, errors.New("mongodb: a collection is required")
	case name == "":
		return nil, errors.New("mongodb: the name of the lease is required, for example payments-sbr")
	}
	journalled := true
	records := collection.Clone(options.Collection().
		SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Linearizable()).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journalled}))
	changes := records.Clone(options.Collection().SetReadConcern(readconcern.Majority()))
	client := collection.Database().Client() // it does not say where it connects to
	return &Store{records: records, changes: changes, name: name, servers: fmt.Sprintf("client %p", client)}, nil
}

// String returns the place of the record: database, collection and _id.
func (s *Store) String() string {
	return s.records.Database().Name() + "." + s.records.Name() + "/" + s.name
}

// Location implements lease.Located: the servers, the database, the collection and the _id. A client that is
// the caller's stands for its servers.
func (s *Store) Location() string {
	return fmt.Sprintf("mongodb %s, collection %s.%s, lease %s", s.servers, s.records.Database().Name(),
		s.records.Name(), s.name)
}

// Close ends the store. A client that Factory made is closed with its last store.
func (s *Store) Close() error {
	if s.end != nil {
		s.end()
	}
	return nil
}

// Identity implements lease.Identified: the UUID of the collection, which is the same on all servers of a
// replica set, and which a collection that is made anew, or restored, has not; and the name of the lease.
func (s *Store) Identity(ctx context.Context) (string, error) {
	named := bson.D{{Key: "name", Value: s.records.Name()}}
	found, err := s.records.Database().ListCollectionSpecifications(ctx, named)
	switch {
	case err != nil:
		return "", s.wrap(err)
	case len(found) == 0:
		return "", s.refused("there is no such collection: create it, by db.createCollection(%q)", s.records.Name())
	case found[0].UUID == nil:
		return "", fmt.Errorf("mongodb: %s: the server does not tell the UUID of the collection", s)
	}
	return fmt.Sprintf("mongodb collection %x, lease %s", found[0].UUID.Data, s.name), nil
}

func (s *Store) byName() bson.D { return bson.D{{Key: "_id", Value: s.name}} }

// Read implements lease.Store. A deadline of ctx bounds the work of the server, too. The version is the whole
// document: each write has a name of its own in it (lease.Document), so no version comes back after a
// deletion, and what a hand has changed is another version.
func (s *Store) Read(ctx context.Context) (lease.Snapshot, error) {
	raw, err := s.records.FindOne(ctx, s.byName()).Raw()
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return lease.Snapshot{}, nil
	case err != nil:
		return lease.Snapshot{}, s.wrap(err)
	}
	r, err := s.record(raw)
	if err != nil {
		return lease.Snapshot{}, s.refused("the document is not the record of a lease: %w", err)
	}
	return lease.Snapshot{Record: r, Version: lease.Version(raw)}, nil
}

func (s *Store) record(raw bson.Raw) (lease.Record, error) {
	var fields bson.D
	if err := bson.Unmarshal(raw, &fields); err != nil {
		return lease.Record{}, err
	}
	if len(fields) == 0 || fields[0].Key != "_id" || fields[0].Value != s.name {
		return lease.Record{}, errors.New("its _id is another one: has the collection a collation?")
	}
	text, err := bson.MarshalExtJSON(fields[1:], false, false)
	if err != nil {
		return lease.Record{}, err
	}
	return lease.UnmarshalRecord(text)
}

// maxDocument is the size of the largest document, in bytes: a replacement carries two, the one that it
// replaces and the next, and MongoDB takes 16 MiB. A larger one could be inserted once, and never replaced.
const maxDocument = 8<<20 - 1<<10

// document is what UnmarshalRecord reads, as BSON.
func (s *Store) document(r lease.Record) (bson.Raw, error) {
	text, err := lease.MarshalRecord(r)
	if err != nil {
		return nil, err
	}
	var fields bson.D
	if err := bson.UnmarshalExtJSON(text, true, &fields); err != nil {
		return nil, err
	}
	document, err := bson.Marshal(append(s.byName(), fields...))
	if len(document) > maxDocument {
		err = fmt.Errorf("%w: %d bytes, at most %d: list fewer members in the verdict", lease.ErrTooLarge,
			len(document), maxDocument)
	}
	return document, err
}

// Write implements lease.Store: an insert, or the replacement of the document that still is as it was read.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	next, err := s.document(r)
	if err != nil {
		return "", s.refused("%w", err)
	}
	if prev == "" {
		_, err = s.records.InsertOne(ctx, next)
	} else {
		if _, err := s.record(bson.Raw(prev)); err != nil { // else it could match any document
			return "", s.refused("this is no version of this store: %w", err)
		}
		var done *mongo.UpdateResult
		done, err = s.records.ReplaceOne(ctx, bson.Raw(prev), next)
		if err == nil && done.MatchedCount == 0 {
			return "", lease.ErrConflict
		}
	}
	if err != nil {
		return "", s.wrap(err)
	}
	return lease.Version(next), nil
}

// Watch implements lease.Watcher: a change stream says when to read. A server that has none (no replica set)
// is an error that wraps errors.ErrUnsupported.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	stream, err := s.stream(ctx)
	if err != nil {
		return err
	}
	defer end(ctx, stream)
	for more := true; more; more = stream.Next(ctx) {
		now, err := s.Read(ctx) // the first one after the stream has begun, so that no change is missed
		if err != nil {
			return err
		}
		fn(now)
	}
	return cmp.Or(s.wrap(stream.Err()), ctx.Err())
}

// end closes a stream also where ctx has ended. A server that is silent does not delay it for ever.
func end(ctx context.Context, stream *mongo.ChangeStream) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.DefaultSettings().OperationTimeout)
	defer cancel()
	_ = stream.Close(bounded)
}

// stream opens a stream of what happens to the document, or to the whole collection (dropped, renamed): that
// names no document.
func (s *Store) stream(ctx context.Context) (*mongo.ChangeStream, error) {
	ours := bson.D{{Key: "$match", Value: bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "documentKey._id", Value: s.name}},
		bson.D{{Key: "documentKey", Value: bson.D{{Key: "$exists", Value: false}}}},
	}}}}}
	stream, err := s.changes.Watch(ctx, mongo.Pipeline{ours})
	return stream, s.wrap(err)
}
