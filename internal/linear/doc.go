// Package linear checks that what the clients of one lease saw can be explained by one lease: one after the
// other, in an order that respects real time. It is for the tests of the backends.
//
//	h := linear.New(linear.Options{})
//	c, err := h.Open(0, 0, store, settings, lease.Options{}) // one for each client
//	c.Play(ctx, random, 6, time.Second, pause)               // or c.Acquire, c.Release, … one at a time
//	err = h.Check(time.Minute, linear.Artifacts(t))
//
// The model is the contract of package lease: a holder, a token that grows by one with each grant, the last
// verdict; Held and Read show exactly what stands there; Check is true only for the holder. See model.go.
//
// What a client cannot know stays open to the end: an Acquire that ended as Unknown may be granted at any
// time after it was called, and be undone at any time after the lease has sent a write to undo it; a Release
// that ended as Unknown may free the lease at any later time. To keep the search short the store is tapped:
// only a write that was sent can be committed.
//
// Each client is used by one goroutine at a time.
package linear
