package mongodb

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/serf-sbr/serf-sbr/lease"
)

// meanings are what codes of the server say for certain, the first that fits. All others are "unknown", and
// these among them on purpose:
//   - not (any longer) the primary (10107, 10058, 13435, 189, 11602, 91, 11600): some come after the write
//     has been done here and before a majority had it; and the next primary is there within seconds, so
//     that a refusal would give up too early;
//   - out of time (50, 262), no space (14031): they can come in the middle.
var meanings = []struct {
	codes  []int
	is     error
	advice string
}{
	{[]int{11000, 11001, 12582}, lease.ErrConflict, ""}, // the document exists: an insert of one wrote nothing
	{[]int{10334, 17419, 17420}, errTooLarge, ""},       // for BSON, or with what the server adds
	// What a server that stands alone says to a linearizable read.
	{[]int{123}, lease.ErrRefused, "the server stands alone: make it a replica set, be it of one member (rs.initiate()): "},
	// Checked before anything is done: no right, a wrong password, an unknown user; a read concern, an option
	// or a namespace that this server does not take; a view; a validation rule of the collection that the
	// record does not pass.
	{[]int{13, 18, 11, 72, 73, 115, 148, 166, 121}, lease.ErrRefused, ""},
	// Only a replica set has change streams, and not all that speak MongoDB's protocol know them.
	{[]int{40573, 40324, 238, 59}, errors.ErrUnsupported, ""},
}

var errTooLarge = fmt.Errorf("%w: %w", lease.ErrRefused, lease.ErrTooLarge)

// wrap names the record, and says what is certain. No error stays none.
func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, driver.ErrDocumentTooLarge) { // it was not sent
		return fmt.Errorf("mongodb: %s: %w: %w", s, errTooLarge, err)
	}
	codes := certain(err)
	for _, m := range meanings {
		if slices.ContainsFunc(codes, func(code int) bool { return slices.Contains(m.codes, code) }) {
			return fmt.Errorf("mongodb: %s: %w: %s%w", s, m.is, m.advice, err)
		}
	}
	return fmt.Errorf("mongodb: %s: %w", s, err)
}

// refused is an error after which nothing was written, and which needs a person.
func (s *Store) refused(format string, args ...any) error {
	return fmt.Errorf("mongodb: %s: %w: %w", s, lease.ErrRefused, fmt.Errorf(format, args...))
}

// certain are the codes with which the server refused the whole request. None: it did not answer, or it
// wrote and a majority has not confirmed it (a write concern error), which a new primary may undo or not,
// whatever else the answer says.
func certain(err error) []int {
	if w, ok := errors.AsType[mongo.WriteException](err); ok && w.WriteConcernError != nil {
		return nil
	}
	answer, ok := errors.AsType[mongo.ServerError](err)
	if !ok || answer.HasErrorLabel("NetworkError") {
		return nil
	}
	return answer.ErrorCodes()
}
