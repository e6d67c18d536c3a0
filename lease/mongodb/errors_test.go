package mongodb

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/serf-sbr/serf-sbr/lease"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	client, err := mongo.Connect(options.Client())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(t.Context()) })
	s, err := New(client.Database("sbr").Collection("sbr_leases"), "payments-sbr")
	require.NoError(t, err)
	return s
}

// No real replica set is at hand, so this goes by the driver's own types. What is not certain is neither a
// conflict nor a refusal.
func TestWrap_WhatEachErrorMeans(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	command := func(code int32, labels ...string) error { return mongo.CommandError{Code: code, Labels: labels} }
	write := func(code int, concern *mongo.WriteConcernError) error {
		e := mongo.WriteException{WriteConcernError: concern}
		if code != 0 {
			e.WriteErrors = mongo.WriteErrors{{Code: code}}
		}
		return e
	}
	const unknown = "unknown"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"the document exists":                        {write(11000, nil), "conflict"},
		"no right":                                   {command(13), "refused"},
		"no right, of one write":                     {write(13, nil), "refused"},
		"a wrong password":                           {fmt.Errorf("connection: %w", command(18)), "refused"},
		"no replica set":                             {command(123), "refused"},
		"a validation rule":                          {write(121, nil), "refused"},
		"too large for the driver":                   {driver.ErrDocumentTooLarge, "too large"},
		"too large for the server":                   {command(10334), "too large"},
		"too large once it is there":                 {write(17419, nil), "too large"},
		"no change streams":                          {command(40573), "unsupported"},
		"not the primary":                            {command(10107), unknown},
		"no longer the primary":                      {command(189), unknown},
		"interrupted by an election":                 {command(11602), unknown},
		"shutting down":                              {command(91), unknown},
		"out of time":                                {command(50), unknown},
		"no space":                                   {command(14031), unknown},
		"the network":                                {command(0, "NetworkError"), unknown},
		"the network, with an old code":              {command(13, "NetworkError"), unknown},
		"any other socket error":                     {&net.OpError{Op: "read", Err: errors.New("reset")}, unknown},
		"the majority did not answer":                {write(0, &mongo.WriteConcernError{Code: 64}), unknown},
		"no majority to be had":                      {write(0, &mongo.WriteConcernError{Code: 100}), unknown},
		"exists, as far as this primary without one": {write(11000, &mongo.WriteConcernError{Code: 64}), unknown},
		"a code that nobody knows":                   {command(424242), unknown},
		"disconnected":                               {mongo.ErrClientDisconnected, unknown},
	} {
		err := s.wrap(c.err)
		got := unknown
		for text, sentinel := range map[string]error{
			"conflict": lease.ErrConflict, "refused": lease.ErrRefused, "unsupported": errors.ErrUnsupported,
		} {
			if errors.Is(err, sentinel) {
				got = text
			}
		}
		if errors.Is(err, lease.ErrTooLarge) && got == "refused" {
			got = "too large"
		}
		assert.Equal(t, c.want, got, "%s: %v", name, err)
		if got != "conflict" {
			assert.ErrorContains(t, err, "sbr.sbr_leases/payments-sbr", name)
		}
	}
}

// The _id decides which lease it is, whatever the collation of the collection takes for the same.
func TestRecord_OfAnotherLease(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	document, err := s.document(lease.Record{Token: 1})
	require.NoError(t, err)
	got, err := s.record(document)
	require.NoError(t, err)
	assert.Equal(t, lease.Record{Token: 1}, got)
	for _, broken := range []any{
		bson.D{}, bson.D{{Key: "_id", Value: "Payments-SBR"}}, bson.D{{Key: "_id", Value: "payments-sbr"}},
		bson.D{{Key: "_id", Value: "payments-sbr"}, {Key: "format", Value: 1}, {Key: "holder", Value: ""},
			{Key: "token", Value: 1.5}},
	} {
		raw, err := bson.Marshal(broken)
		require.NoError(t, err)
		_, err = s.record(raw)
		assert.Error(t, err, "%v", broken)
	}
}
