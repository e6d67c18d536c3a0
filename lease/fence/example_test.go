package fence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// The first owner is paused before its write. By the time it goes on, the second one has written.
func Example() {
	ctx := context.Background()
	f := fence.New()
	row := "nothing"
	write := func(token uint64, text string) {
		err := f.Do(ctx, token, func() error { row = text; return nil })
		fmt.Printf("%s: %v\n", text, err)
	}

	write(1, "a began")
	// a is paused here; its lease runs out, and b gets it with token 2
	write(2, "b was here")
	write(1, "a goes on")
	fmt.Println(row)
	// Output:
	// a began: <nil>
	// b was here: <nil>
	// a goes on: fence: stale token: 1 is older than 2, which was seen already: its owner has been replaced and must stop
	// b was here
}

// A resource that restarts goes on from its file.
func ExampleOpenFile() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()

	for _, token := range []uint64{7, 6} { // one life each
		file, err := fence.OpenFile(filepath.Join(dir, "orders.fence"))
		if err != nil {
			panic(err)
		}
		f, err := fence.Open(file)
		if err != nil {
			panic(err) // the file is damaged: nothing is admitted until somebody has looked at it
		}
		err = f.Do(ctx, token, func() error { return nil })
		fmt.Println(f.Newest(), errors.Is(err, fence.ErrStale))
		_ = file.Close()
	}
	// Output:
	// 7 false
	// 7 true
}

// Over HTTP: the owner's client sends the token of its lease, the resource's handler checks it.
func ExampleHandler() {
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.FromContext(r.Context())
		fmt.Fprintf(w, "done under token %d", token)
	})
	server := httptest.NewServer(fence.Handler(fence.New(), orders))
	defer server.Close()

	l, err := lease.New(leasetest.NewMemory().View("a"), "a", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	client := &http.Client{Transport: &fence.Transport{Source: fence.Of(l)}}
	post := func() {
		resp, err := client.Post(server.URL, "text/plain", strings.NewReader("an order"))
		if err != nil {
			fmt.Println(errors.Is(err, fence.ErrNoToken), "nothing was sent")
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		fmt.Println(resp.StatusCode, string(body))
	}

	post()
	_, err = l.Acquire(context.Background(), lease.Proposal{})
	fmt.Println(err)
	post()
	// Output:
	// true nothing was sent
	// <nil>
	// 200 done under token 1
}

// A run keeps the token it began with, also when its process gets the lease once more.
func ExampleWithToken() {
	token := uint64(3)
	transport := &fence.Transport{Source: func() (uint64, bool) { return token, true }}
	run := fence.WithToken(context.Background(), token)

	token = 4 // the lease was lost and acquired again; the first run has not noticed yet
	r, err := http.NewRequestWithContext(run, http.MethodPost, "http://orders.example", nil)
	if err != nil {
		panic(err)
	}
	resp, err := transport.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	fmt.Println(errors.Is(err, fence.ErrStale))
	// Output: true
}
