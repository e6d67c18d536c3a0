// Package etcd keeps the record of a lease under one key of an etcd cluster (version 3).
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"https://etcd-1:2379", "https://etcd-2:2379"}, TLS: tls})
//	defer client.Close()
//	store, err := etcd.New(client, "/serf-sbr/payments-sbr")
//
// The value is the JSON of lease.MarshalRecord. The store does not expire it: there is no etcd lease and no
// time to live. The parties that watch find a holder that is silent for too long, as with every store.
//
// # Guarantees
//
//   - A read is linearizable. A write is one transaction that compares the value with the value read. Each
//     write has a name of its own in the value, so a version never comes back: neither when the key is
//     deleted and made anew, nor when the cluster is restored from a snapshot, after which revisions repeat.
//   - ErrConflict and ErrRefused mean certainly not written. Refused are: no right to the key, a wrong
//     password, a record above 700 KiB (a write carries the one before it, too), a cluster without space
//     (NOSPACE), and a value that is no record.
//   - A watch begins at the revision after the read, and ends when the cluster has no leader or has compacted
//     that revision.
//
// # Non-guarantees
//
//   - The password is read when a client is made: who changes it starts the process again. The certificate of
//     a client (tls.cert) is read for each new connection.
//   - A cluster that is restored from an older snapshot has forgotten grants and verdicts. The members tell
//     it again: see lease.Restore.
//   - The store sets no time limits of its own: the client's DialKeepAliveTime says how soon a dead connection is
//     noticed.
//
// # Assumptions
//
//   - The members of the etcd cluster write to disk what they acknowledge (no --unsafe-no-fsync).
//   - No other program writes below the key.
package etcd
