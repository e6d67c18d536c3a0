package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/serf-sbr/serf-sbr/internal/secret"
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
// timeout for a primary or a connection.
func Options(uri string, timeout time.Duration) *options.ClientOptions {
	return options.Client().ApplyURI(uri).SetAppName("serf-sbr").
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

func (c section) client(timeout time.Duration) (*mongo.Client, error) {
	if c.Database == "" {
		return nil, errors.New("mongodb: lease.mongodb.database is required")
	}
	uri, err := secret.Of("lease.mongodb.uri", c.URI, c.URIFile, URIVariable)
	if err != nil {
		return nil, fmt.Errorf("mongodb: no server: %w", err)
	}
	uri = strings.TrimSpace(uri)
	opts := Options(uri, timeout)
	if err := opts.Validate(); err != nil {
		text := strings.ReplaceAll(err.Error(), uri, "(the uri)")
		return nil, fmt.Errorf("mongodb: lease.mongodb.uri is not valid: %s", text)
	}
	client, err := mongo.Connect(opts)
	if err != nil {
		return nil, fmt.Errorf("mongodb: %w", err)
	}
	return client, nil
}

// Factory is the implementation for lease.Register, configured by uri or uri-file, database and collection.
// The _id of the record is the lease's name. Its stores are *Store: close them.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	client, err := set.client(spec.Settings.OperationTimeout)
	if err != nil {
		return nil, err
	}
	collection := client.Database(set.Database).Collection(cmp.Or(set.Collection, defaultCollection))
	s, err := New(collection, spec.Name)
	if err != nil {
		return nil, err
	}
	s.client = client
	return s, nil
}

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "mongodb"

func init() { lease.Register(Key, Factory) }
