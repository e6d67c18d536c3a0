package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// FerretDB is a server that speaks MongoDB's protocol (test/ferretdb).
type FerretDB struct {
	Server
	folder string
}

// StartFerretDB starts one, over the database at a URL of PostgreSQL, or, if that is empty, SQLite. An empty
// log is a file beside its data. The program is built first if it is missing; progress is told.
func StartFerretDB(ctx context.Context, p Place, postgres, log string, progress io.Writer) (
	*FerretDB, error) {
	program, err := buildcache.FerretDB.Ensure(ctx, progress)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "ferretdb") // short: the path of a socket is
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	if log == "" {
		log = filepath.Join(folder, "log")
	}
	s := &FerretDB{folder: folder}
	s.Place, s.Ping = p, s.ping
	s.Command = func(address string) (process.Command, error) {
		args := []string{"-listen", address, "-data", folder, "-postgres", postgres}
		return process.Command{Name: "ferretdb", Program: program, Args: args, Log: log}, nil
	}
	if err := s.StartSomewhere(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the server and removes its data.
func (s *FerretDB) Close() error {
	s.Kill()
	return os.RemoveAll(s.folder)
}

// URI is where the server is.
func (s *FerretDB) URI() string { return "mongodb://" + s.address }

// Options are those of a client for stores.
func (s *FerretDB) Options() *options.ClientOptions {
	return mongodb.Options(s.URI(), 5*time.Second).SetDialer(dialer(s.Place.Dial))
}

func (s *FerretDB) ping(ctx context.Context) error {
	client, err := mongo.Connect(s.Options())
	if err != nil {
		return err
	}
	return errors.Join(client.Ping(ctx, nil), client.Disconnect(context.WithoutCancel(ctx)))
}

// dialer is a function to connect, as the driver wants it.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext implements options.ContextDialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}
