package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Preflight tries what the store will do: it finds the collection, reads the record, and asks for the
// rights to write it and to watch it. It changes nothing. The error lists every problem on a line of its
// own; it wraps lease.ErrRefused where the store will not work as things are.
func (s *Store) Preflight(ctx context.Context) error {
	if _, err := s.Identity(ctx); err != nil {
		return err // without a collection, or an answer, everything else would fail for the same reason
	}
	_, unreadable := s.Read(ctx)
	return errors.Join(unreadable, s.DryRun(ctx))
}

// actions are the rights that a store needs on its collection.
var actions = []string{"find", "insert", "update", "changeStream"}

// DryRun asks whether the next write would be taken: a replacement that matches nothing needs a primary and
// the right to update; the other rights are those that the server says the user has.
func (s *Store) DryRun(ctx context.Context) error {
	nothing := append(s.byName(), bson.E{Key: "write", Value: "none"}) // the name of no write: see lease.Document
	if _, err := s.records.ReplaceOne(ctx, nothing, bson.D{}); err != nil {
		return s.wrap(err)
	}
	missing, err := s.missing(ctx)
	if err == nil && len(missing) > 0 {
		err = s.refused("no right to %v: grant these actions on the collection, or readWrite on its database", missing)
	}
	return err
}

// missing are the rights that the user has not, as far as the server says: one that knows no users says
// nothing.
func (s *Store) missing(ctx context.Context) ([]string, error) {
	var status struct {
		Info struct {
			Users      []bson.Raw `bson:"authenticatedUsers"`
			Privileges []struct {
				Resource struct {
					Database   *string `bson:"db"`
					Collection *string `bson:"collection"`
					Any        bool    `bson:"anyResource"`
				} `bson:"resource"`
				Actions []string `bson:"actions"`
			} `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	ask := bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}
	if err := s.records.Database().RunCommand(ctx, ask).Decode(&status); err != nil {
		return nil, s.wrap(err)
	}
	if len(status.Info.Users) == 0 {
		return nil, nil
	}
	covers := func(granted *string, name string) bool {
		return granted != nil && (*granted == "" || *granted == name) // "" stands for all; none is another kind of resource
	}
	database, collection := s.records.Database().Name(), s.records.Name()
	missing := slices.Clone(actions)
	for _, p := range status.Info.Privileges {
		if p.Resource.Any || covers(p.Resource.Database, database) && covers(p.Resource.Collection, collection) {
			missing = slices.DeleteFunc(missing, func(a string) bool { return slices.Contains(p.Actions, a) })
		}
	}
	return missing, nil
}

// Risks says what would lose a write that the server acknowledged: a sentence each, with the way out. The store asks for
// majority and journal with each write, whatever the server's defaults are.
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
