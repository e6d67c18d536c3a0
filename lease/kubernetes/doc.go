// Package kubernetes keeps a lease in a Kubernetes object: natively in the Lease of coordination.k8s.io/v1,
// or in the custom resource Lease of akka.io/v1 or pekko.apache.org/v1, so that Go services and Akka or Pekko
// services can contend for one lock.
//
//	cfg := kubernetes.DefaultConfig()
//	cfg.Name = kubernetes.Name("payments") // payments-sbr
//	store, err := kubernetes.New(cfg)
//	...
//	defer store.Close()
//	if err := store.Preflight(ctx); err != nil { ... } // all problems, one per line
//
// Holder, duration, times and transitions are in the native object's spec, where kubectl shows them. The rest
// (token, nonce, exact time to live, verdict) is JSON in the annotation named by the constant Annotation;
// beyond 8 KiB it is gzip in base64, which "base64 -d | gunzip" shows. A custom resource has only owner and
// time in its spec, so the annotation holds the exact times as well.
//
// # Guarantees
//
//   - A write takes place only on the exact state it names: every one carries resourceVersion and uid. It is
//     one request: a merge patch, or for a lease that does not exist a PUT (a POST for a custom resource).
//     Racing writers, creators included, have one winner.
//   - Labels, annotations, owners and spec fields of others stay as they are.
//   - lease.ErrConflict and lease.ErrRefused mean certainly not written. They come only from an answer that
//     the API server itself formed, never from one made by something on the way, nor from a retry: there are
//     none, neither here nor in client-go. (net/http sends again only what the server has certainly not
//     taken.)
//   - A read is answered by etcd, not by a cache.
//   - A token is never read as less than spec.leaseTransitions, so that it survives the loss of the
//     annotation. (Custom resources: below.)
//   - A record that is newer than this program, or that is not a record, is an error that names the lease and
//     the way out.
//   - A resource that the server does not know is ErrNotInstalled, never a lease that is free.
//   - A token file is read for each request, so a rotated token is used at once. A 401 is unknown, never
//     final.
//
// # Non-guarantees
//
//   - Every other error of Write is unknown: a write may be committed although the client saw a time-out or a
//     5xx, even seconds after it saw it. A read that still shows the old version does not settle that;
//     another write on that version does.
//   - ErrConflict may be caused by the caller's own earlier write whose answer was lost: compare the nonce.
//   - Other programs are not kept from writing to the object. A holder that was changed by other means is
//     reported with an empty nonce.
//   - Watch is fast, usually a few milliseconds, but not proof of a live store: while etcd stands still the
//     stream stays open and silent.
//   - Credential plugins (exec) and klog users elsewhere in the process may log through klog's global logger;
//     everything else that client-go would log is discarded, because it comes back as an error.
//
// # Shared with Akka or Pekko
//
// Config.API chooses the custom resource. It is for locks (singletons, shards, jobs) that parties of both
// kinds compete for. What the other kind does changes some promises:
//
//   - Its writes drop the annotation. The holder, the time and a growing token survive; the verdict does not.
//     A lease that has seen the verdict remembers it, a newcomer cannot: a member that was downed could come
//     back. So a split brain resolver may use this mode only if every party of that lease is serf-sbr, and is
//     better off natively even then.
//   - The token goes on from metadata.generation, which the server raises with each change of the spec and no
//     client can lower. Each write here raises both, so that the generation never falls behind. While an Akka
//     node holds the lease the token grows with each of its heartbeats. Only deleting the object sets the
//     generation back; then the memory of the parties that have seen the old token keeps theirs growing, but
//     a newcomer's would start again: do not delete a lease that fences something.
//   - It judges by the wall clock: it takes over when its own clock shows more than spec.time +
//     heartbeat-timeout - 2 x heartbeat-interval (96 s by default). So a holder here trusts a heartbeat for
//     less time (79 s by default, see Store.Window), infinite timeouts are refused, and wall clocks of all
//     parties must agree within one heartbeat-interval, and may not be set back by more. With larger
//     differences an Akka node may take the lease from a living Go holder; that holder learns with its next
//     heartbeat, as among Akka nodes.
//   - Here nothing is judged by the wall clock: a foreign owner is alive as long as its time changes, and is
//     replaced after heartbeat-timeout of silence as seen from here. Times that make no sense (negative, far
//     in the future) lock no party out.
//   - Both kinds must be configured with the same heartbeat-timeout and heartbeat-interval, and with the same
//     lease name (the rules by which names are sanitised are the same).
//
// # Assumptions
//
//   - resourceVersions are those of etcd: opaque except that Watch compares them as numbers to notice a
//     restored backup.
//   - The API server has coordination.k8s.io/v1 (v1.14 and later; tested with v1.36), or the custom resource
//     is installed.
//   - The rights, natively: get, watch, create, update and patch with resourceNames: [NAME]. For a custom
//     resource: get, watch, create and patch, likewise; it is created by a POST to the path that names it,
//     since a PUT would not, and the server judges that path. (It does not compare it with the name in the
//     body, so the right to create is a little wider than it looks.) A lease that was made beforehand needs
//     only get, watch and patch. Beside the lease two rights help, and are not needed: get on its namespace
//     (Identity) and create on Events (Announce). Package manifest prints all this.
package kubernetes
