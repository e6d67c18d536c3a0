package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/serf-sbr/serf-sbr/internal/secret"
	"github.com/serf-sbr/serf-sbr/internal/shared"
	"github.com/serf-sbr/serf-sbr/lease"
)

const (
	// defaultCollection keeps the records where the configuration names no other.
	defaultCollection = "sbr_leases"
	// URIVariable is the environment variable that is read where the configuration has neither uri nor
	// uri-file.
	URIVariable = "SBR_MONGODB_URI"
)

// Options returns the options of a client for stores: no request is sent twice, and none waits longer than
// timeout for a primary or a connection. Without maxPoolSize nothing bounds these: each watch keeps one.
func Options(uri string, timeout time.Duration) *options.ClientOptions {
	return options.Client().SetMaxPoolSize(0).ApplyURI(uri).SetAppName("serf-sbr").
		SetRetryReads(false).SetRetryWrites(false).SetMaxAdaptiveRetries(0).
		SetServerSelectionTimeout(timeout).SetConnectTimeout(timeout)
}

// section is what a configuration file may say of this implementation.
type section struct {
	URI        string `json:"uri"        yaml:"uri"`
	URIFile    string `json:"uri-file"   yaml:"uri-file"`
	Database   string `json:"database"   yaml:"database"`
	Collection string `json:"collection" yaml:"collection"`
}

// connected is a client, and the servers that it was told of.
type connected struct {
	*mongo.Client
	servers string
}

// clients are those of Factory, by what they are made from.
var clients shared.Values[string, connected]

// share returns the client. A store that does not use it any more calls end.
func (c section) share(timeout time.Duration) (client connected, end func(), err error) {
	if c.Database == "" {
		return client, nil, errors.New("mongodb: lease.mongodb.database is required")
	}
	uri, err := secret.Of("lease.mongodb.uri", c.URI, c.URIFile, URIVariable)
	if err != nil {
		return client, nil, fmt.Errorf("mongodb: no server: %w", err)
	}
	uri = strings.TrimSpace(uri)
	return clients.Use(timeout.String()+" "+uri, func() (connected, error) {
		opts := Options(uri, timeout)
		if err := opts.Validate(); err != nil {
			text := strings.ReplaceAll(err.Error(), uri, "(the uri)")
			if strings.Contains(text, "invalid host") { // where there is none it quotes the password
				text = "mongodb://USER@HOST,HOST/?replicaSet=NAME is"
			}
			return connected{}, fmt.Errorf("mongodb: lease.mongodb.uri is not valid: %s", text)
		}
		client, err := mongo.Connect(opts)
		if err != nil {
			return connected{}, fmt.Errorf("mongodb: %w", err)
		}
		return connected{client, strings.Join(slices.Sorted(slices.Values(opts.Hosts)), ",")}, nil
	}, func(client connected) { _ = client.Disconnect(context.Background()) }) // it cuts requests off
}

// Factory is the implementation for lease.Register, configured by uri or uri-file, database and collection.
// The _id of the record is the lease's name. Its stores are *Store: close them. Those of one URI
// share a client.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	client, end, err := set.share(spec.Settings.OperationTimeout)
	if err != nil {
		return nil, err
	}
	collection := client.Database(set.Database).Collection(cmp.Or(set.Collection, defaultCollection))
	s, err := New(collection, spec.Name)
	if err != nil {
		end()
		return nil, err
	}
	s.servers, s.end = client.servers, end
	return s, nil
}

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "mongodb"

func init() { lease.Register(Key, Factory) }

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
	// the name of no write: see lease.Document
	nothing := append(s.byName(), bson.E{Key: "write", Value: "none"})
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
		return []string{"this is a router of a sharded cluster: look at the replica set that keeps the collection"},
			nil
	case hello.Set == "":
		return []string{"the server is no replica set: whoever loses its disk loses the verdicts, and there is no stream of changes: " +
			"run a replica set of three"}, nil
	case len(hello.Hosts) < 3:
		return []string{fmt.Sprintf("the replica set %s has %d members with data (and %d arbiters): a failover can lose verdicts, or be "+
			"impossible: run three with data", hello.Set, len(hello.Hosts), len(hello.Arbiters))}, nil
	}
	return nil, nil
}
