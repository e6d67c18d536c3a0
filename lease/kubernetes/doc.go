// Package kubernetes keeps a lease in a native coordination.k8s.io/v1 Lease object.
//
//	cfg := kubernetes.DefaultConfig()
//	cfg.Name = kubernetes.Name("payments") // payments-sbr
//	store, err := kubernetes.New(cfg)
//	...
//	defer store.Close()
//	if err := store.Preflight(ctx); err != nil { ... } // all problems, one per line
//
// Holder, duration, times and transitions are in the object's spec, where kubectl shows them. The rest (token, nonce, exact
// time to live, verdict) is JSON in the annotation named by the constant Annotation; beyond 8 KiB it is gzip in base64, which
// "base64 -d | gunzip" shows.
//
// # Guarantees
//
//   - A write takes place only on the exact state it names: every one carries resourceVersion and uid. It is one request: a merge
//     patch, or for a lease that does not exist a PUT. Racing writers, creators included, have one winner.
//   - Labels, annotations, owners and spec fields of others stay as they are.
//   - lease.ErrConflict and lease.ErrRefused mean certainly not written. They come only from an answer that the API server itself
//     formed, never from one made by something on the way, nor from a retry: there are none, neither here nor in client-go. (net/http
//     sends again only what the server has certainly not taken.)
//   - A read is answered by etcd, not by a cache.
//   - A token is never read as less than spec.leaseTransitions, so that it survives the loss of the annotation.
//   - A record that is newer than this program, or that is not a record, is an error that names the lease and the way out.
//
// # Non-guarantees
//
//   - Every other error of Write is unknown: a write may be committed although the client saw a time-out or a 5xx, even seconds
//     after it saw it. A read that still shows the old version does not settle that; another write on that version does.
//   - ErrConflict may be caused by the caller's own earlier write whose answer was lost: compare the nonce.
//   - Nobody else is kept from writing to the object. A holder that was changed by other means is reported with an empty nonce.
//   - Watch is fast, usually a few milliseconds, but not proof of a live store: while etcd stands still the stream stays open and silent.
//   - Credential plugins (exec) and klog users elsewhere in the process may log through klog's global logger; everything else that
//     client-go would log is discarded, because it comes back as an error.
//
// # Assumptions
//
//   - resourceVersions are those of etcd: opaque except that Watch compares them as numbers to notice a restored backup.
//   - The API server has coordination.k8s.io/v1 (v1.14 and later; tested with v1.36). The rights are get, watch, create, update and patch with resourceNames: [NAME]; a lease
//     that was created beforehand needs only get, watch and patch. No right on any other object is used.
package kubernetes
