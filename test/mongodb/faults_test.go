package mongodb_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/test/faults"
)

// FerretDB has no users here, and its disk is not filled.
func TestFaultMatrix(t *testing.T) {
	s := newServer(t)
	collection := s.newCollection(t)
	records := s.client(t, nil).Database("sbr").Collection(collection)
	faults.Matrix(t, &faults.Target{
		Name:    "MongoDB's protocol",
		Address: s.Address(),
		Polls:   true, // it has no change streams
		Open: func(t *faults.T, at, name string) lease.Store {
			client, err := mongo.Connect(mongodb.Options("mongodb://"+at+"/?directConnection=true", 5*time.Second))
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
			store, err := mongodb.New(client.Database("sbr").Collection(collection), name)
			require.NoError(t, err)
			return store
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := records.DeleteOne(ctx, bson.D{{Key: "_id", Value: name}})
			return err
		},
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { s.Kill(); return nil },
				End:   func() error { return s.Start(t.Context()) },
			},
		},
	})
}
