package mongodb_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/test/costs"
)

// FerretDB over SQLite: what is compared is the work of the lease, not a MongoDB.
func BenchmarkCosts(b *testing.B) {
	s := newServer(b)
	collection := s.newCollection(b)
	var writes int
	records := func(b *testing.B, at string) *mongo.Collection {
		client, err := mongo.Connect(mongodb.Options("mongodb://"+at+"/?directConnection=true",
			5*time.Second).SetMonitor(&event.CommandMonitor{
			Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if e.CommandName == "update" || e.CommandName == "insert" || e.CommandName == "findAndModify" {
					writes++
				}
			},
		}))
		require.NoError(b, err)
		b.Cleanup(func() { _ = client.Disconnect(context.Background()) })
		return client.Database("sbr").Collection(collection)
	}
	shared := records(b, s.Address())
	costs.Run(b, &costs.Target{
		Address: s.Address(),
		Open: func(b *testing.B, at, name string) lease.Store {
			c := shared
			if at != s.Address() {
				c = records(b, at)
			}
			store, err := mongodb.New(c, name)
			require.NoError(b, err)
			return store
		},
		Bare: func(b *testing.B, at, name, text string) func(context.Context) error {
			c, version, fields := records(b, at), 0, bson.M{}
			require.NoError(b, bson.UnmarshalExtJSON([]byte(text), false, &fields))
			_, err := c.InsertOne(b.Context(), bson.M{"_id": name, "version": "0"})
			require.NoError(b, err)
			return func(ctx context.Context) error {
				version++
				fields["version"] = strconv.Itoa(version)
				_, err := c.ReplaceOne(ctx, bson.M{"_id": name, "version": strconv.Itoa(version - 1)}, fields)
				return err
			}
		},
		Written: func(*testing.B) int { return writes },
		Others: map[string]func(*testing.B, string, time.Duration) costs.Lock{
			"document lock": func(b *testing.B, at string, ttl time.Duration) costs.Lock {
				return &document{records(b, at), b.Name() + at, ttl}
			},
		},
	})
}

// document is a lock that expires by the clocks of the clients that want it, as document locks do: one
// conditional upsert, asked again until it succeeds.
type document struct {
	c     *mongo.Collection
	owner string
	ttl   time.Duration
}

func (l *document) Lock(ctx context.Context) error {
	for {
		now := time.Now()
		err := l.c.FindOneAndUpdate(ctx, bson.M{"_id": "lock", "expires": bson.M{"$lt": now}},
			bson.M{"$set": bson.M{"owner": l.owner, "expires": now.Add(l.ttl)}},
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Err()
		if !mongo.IsDuplicateKeyError(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l *document) Unlock(ctx context.Context) error {
	_, err := l.c.UpdateOne(ctx, bson.M{"_id": "lock", "owner": l.owner},
		bson.M{"$set": bson.M{"expires": time.Unix(0, 0)}})
	return err
}

// Crash: it is not prolonged.
func (l *document) Crash() {}
