package mongodb

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Codes of the server, by what they say for certain. All others are "unknown", and these among them on
// purpose:
//   - not (any longer) the primary (10107, 10058, 13435, 189, 11602, 91, 11600): some come after the write
//     has been done here and before a majority had it; and the next primary is there within seconds, so
//     that a refusal would give up too early;
//   - out of time (50, 262), no space (14031): they can come in the middle.
var (
	// duplicates: the document exists. An insert of one document with that error wrote nothing.
	duplicates = []int{11000, 11001, 12582}
	// refusals are checked before anything is done: no right, a wrong password, an unknown user; a read
	// concern, an option or a namespace that this server does not take; a view; a validation rule of the
	// collection that the record does not pass.
	refusals = []int{13, 18, 11, 123, 72, 73, 115, 148, 166, 121}
	// tooLarge: for BSON, or with what the server adds.
	tooLarge = []int{10334, 17419, 17420}
	// noStreams: only a replica set has change streams, and not all that speak MongoDB's protocol know them.
	noStreams = []int{40573, 40324, 238, 59}
)

// notAReplicaSet is the code with which a server that stands alone refuses a linearizable read.
const notAReplicaSet = 123

// wrap names the record, and says what is certain.
func (s *Store) wrap(err error) error {
	if errors.Is(err, driver.ErrDocumentTooLarge) { // it was not sent
		return s.refused("%w: %w", lease.ErrTooLarge, err)
	}
	codes := certain(err)
	is := func(known []int) bool {
		return slices.ContainsFunc(codes, func(code int) bool { return slices.Contains(known, code) })
	}
	switch {
	case is(duplicates):
		return lease.ErrConflict
	case is(tooLarge):
		return s.refused("%w: %w", lease.ErrTooLarge, err)
	case slices.Contains(codes, notAReplicaSet):
		return s.refused("the server stands alone: make it a replica set, be it of one member (rs.initiate()): %w", err)
	case is(refusals):
		return s.refused("%w", err)
	case is(noStreams):
		return fmt.Errorf("mongodb: %s: %w: %w", s, errors.ErrUnsupported, err)
	default:
		return fmt.Errorf("mongodb: %s: %w", s, err)
	}
}

// refused is an error after which nothing was written, and which needs a person.
func (s *Store) refused(format string, args ...any) error {
	return fmt.Errorf("mongodb: %s: %w: %w", s, lease.ErrRefused, fmt.Errorf(format, args...))
}

// certain are the codes with which the server refused the whole request. None: it did not answer, or it
// wrote and a majority has not confirmed it (a write concern error), which a new primary may undo or not,
// whatever else the answer says.
func certain(err error) []int {
	var w mongo.WriteException
	if errors.As(err, &w) && w.WriteConcernError != nil {
		return nil
	}
	var answer mongo.ServerError
	if !errors.As(err, &answer) || answer.HasErrorLabel("NetworkError") {
		return nil
	}
	return answer.ErrorCodes()
}
