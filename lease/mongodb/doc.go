// Package mongodb keeps the record of a lease as one document of a MongoDB collection. It is experimental:
// it has been tried against FerretDB, a server that speaks MongoDB's wire protocol, and not yet against a
// replica set of MongoDB.
//
//	client, err := mongo.Connect(mongodb.Options("mongodb://mongo-1,mongo-2,mongo-3/?replicaSet=rs0", 5*time.Second))
//	defer client.Disconnect(ctx)
//	store, err := mongodb.New(client.Database("payments").Collection("sbr_leases"), "payments-sbr")
//
// The document's _id is the name of the lease; its fields are those of lease.MarshalRecord, for people too.
// The store does not expire it: there is no TTL index. The parties that watch find a holder that is silent
// for too long, as with every store.
//
// # Guarantees
//
//   - A read is linearizable, from the primary. A write is one insert, or one replacement of the document
//     that still is, field by field, as it was read; it counts once the journals of a majority have it. So
//     a version never comes back, and what a person has changed is another version.
//   - ErrConflict and ErrRefused mean certainly not written. Refused are: no right, a wrong password, a
//     server that stands alone (no replica set: it has no linearizable reads), a validation rule, a record
//     of more than 8 MiB, and a document that is no record. Whatever an election can undo or bring about
//     is unknown: an error of the write concern above all.
//   - No request is sent twice, by a client from Options.
//   - A watch is a change stream. Without one (Watch says errors.ErrUnsupported) lease.Follow reads.
//   - Preflight wants the collection to exist: its UUID tells the members whether they use one store
//     (Identity).
//
// # Non-guarantees
//
//   - A replica set that is restored from an older backup has forgotten grants and verdicts. The members
//     tell it again: see lease.Restore.
//   - Whose user or password changes opens all stores of the process anew: those of one URI share a client.
//
// # Assumptions
//
//   - Every server of the replica set that votes keeps a journal (writeConcernMajorityJournalDefault is
//     true, as by default).
//   - No other program writes to the collection, and it has the simple collation.
package mongodb
