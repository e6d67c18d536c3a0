package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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

// Validate returns all problems at once, one per line.
func (c section) Validate() error {
	var problems []error
	if c.URI != "" && c.URIFile != "" {
		problems = append(problems, errors.New("mongodb: lease.mongodb has both uri and uri-file: leave one out"))
	}
	if c.Database == "" {
		problems = append(problems, errors.New("mongodb: lease.mongodb.database is required"))
	}
	return errors.Join(problems...)
}

// uri is where the server is, password included. It is in no error.
func (c section) uri() (string, error) {
	if c.URIFile == "" {
		return cmp.Or(c.URI, os.Getenv(URIVariable)), nil
	}
	text, err := os.ReadFile(c.URIFile)
	if err != nil {
		return "", fmt.Errorf("mongodb: lease.mongodb.uri-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (c section) client(timeout time.Duration) (*mongo.Client, error) {
	uri, err := c.uri()
	if err != nil {
		return nil, err
	}
	if uri == "" {
		return nil, fmt.Errorf("mongodb: no server: set lease.mongodb.uri-file, lease.mongodb.uri or $%s", URIVariable)
	}
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
// The _id of the record is the lease's name, "<system>-sbr" if that is empty. Its stores are *Store: close
// them.
func Factory(_ context.Context, spec lease.Spec) (lease.Store, error) {
	var set section
	if err := spec.Configure(&set); err != nil {
		return nil, err
	}
	if err := set.Validate(); err != nil {
		return nil, err
	}
	client, err := set.client(cmp.Or(spec.Settings.OperationTimeout, lease.DefaultSettings().OperationTimeout))
	if err != nil {
		return nil, err
	}
	collection := client.Database(set.Database).Collection(cmp.Or(set.Collection, defaultCollection))
	s, err := New(collection, cmp.Or(spec.Name, spec.System+"-sbr"))
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
