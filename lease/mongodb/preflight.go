package mongodb

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Preflight tries what the store will do: it finds the collection, reads the record, opens a change stream,
// and tries the writes. It changes nothing. The error is as lease.Preflight has it.
func (s *Store) Preflight(ctx context.Context) error {
	if _, err := s.Identity(ctx); err != nil {
		return err // without a collection, or an answer, everything else would fail for the same reason
	}
	_, unreadable := s.Read(ctx)
	stream, unheard := s.stream(ctx)
	switch {
	case unheard == nil:
		unheard = stream.Close(ctx)
	case errors.Is(unheard, errors.ErrUnsupported):
		unheard = nil // members ask now and then
	}
	return errors.Join(unreadable, unheard, s.DryRun(ctx))
}

// DryRun implements lease.DryRunner: an insert that no server takes (its _id is a list), and a replacement of
// no document, need a primary and the rights.
func (s *Store) DryRun(ctx context.Context) error {
	_, inserting := s.records.InsertOne(ctx, bson.D{{Key: "_id", Value: bson.A{}}})
	if w, ok := errors.AsType[mongo.WriteException](inserting); ok && len(w.WriteErrors) > 0 {
		inserting = nil // the server has looked at the document
	}
	nothing := append(s.byName(), bson.E{Key: "write", Value: "none"}) // the name of no write: see lease.Document
	_, updating := s.records.ReplaceOne(ctx, nothing, bson.D{})
	return errors.Join(s.wrap(inserting), s.wrap(updating))
}

// Risks says what would lose a write that the server acknowledged: a sentence each, with the way out. The
// store asks for majority and journal with each write, whatever the server's defaults are.
func (s *Store) Risks(ctx context.Context) ([]string, error) {
	var hello struct {
		Set      string   `bson:"setName"`
		Router   string   `bson:"msg"`
		Hosts    []string `bson:"hosts"`
		Arbiters []string `bson:"arbiters"`
	}
	if err := s.records.Database().RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return nil, s.wrap(err)
	}
	switch {
	case hello.Router == "isdbgrid": // of the shards behind it a client sees nothing
		return []string{"this is a router of a sharded cluster: look at the replica set that keeps the collection"}, nil
	case hello.Set == "":
		return []string{"the server is no replica set: whoever loses its disk loses the verdicts, and there is no stream of changes: " +
			"run a replica set of three"}, nil
	case len(hello.Hosts) < 3:
		return []string{fmt.Sprintf("the replica set %s has %d members with data (and %d arbiters): a failover can lose verdicts, or be "+
			"impossible: run three with data", hello.Set, len(hello.Hosts), len(hello.Arbiters))}, nil
	}
	return nil, nil
}
