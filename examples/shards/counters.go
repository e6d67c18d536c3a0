package main

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"sync"

	"github.com/serf-sbr/serf-sbr/sharding"
)

// shardOf is the shard of a request's key, which its path ends with.
func shardOf(urlPath string) string { return sharding.ShardOf(path.Base(urlPath), shards) }

// counters are the counts of the shards that run here.
type counters struct {
	mu   sync.Mutex
	open map[string]*counter
}

type counter struct {
	shard *sharding.Shard
	n     uint64
}

// run is one run of one shard: it goes on counting where the run before has stopped.
func (c *counters) run(ctx context.Context, s *sharding.Shard) error {
	n, _ := strconv.ParseUint(string(s.State()), 10, 64) // 0 where nothing was handed over
	c.mu.Lock()
	if c.open == nil {
		c.open = make(map[string]*counter)
	}
	c.open[s.Name()] = &counter{s, n}
	c.mu.Unlock()
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.open[s.Name()].n
	delete(c.open, s.Name()) // from now on nothing is counted here
	return s.HandOver(strconv.AppendUint(nil, last, 10))
}

// count counts one more, unless the shard does not run here.
func (c *counters) count(shard string) (n uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.open[shard]
	if x == nil || x.shard.Check() != nil {
		return 0, false
	}
	x.n++
	return x.n, true
}

func (c *counters) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /count/{key}", func(w http.ResponseWriter, r *http.Request) {
		n, ok := c.count(shardOf(r.URL.Path))
		if !ok {
			http.Error(w, "this shard does not run here", http.StatusMisdirectedRequest) // the sender waits
			return
		}
		fmt.Fprintln(w, n)
	})
	return mux
}
