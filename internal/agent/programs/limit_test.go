package programs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// An agent takes a bounded number of programs, says so, and takes another one once there is room.
func TestLimit_OfPrograms(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		a := c.agents["n1"]
		for i := range programs.MaxPrograms {
			x, err := a.post(nil, hello(fmt.Sprintf("job-%d", i), "client", 4711))
			require.NoError(t, err)
			defer x.close()
			require.Equal(t, http.StatusOK, x.resp.StatusCode, "program %d", i)
		}
		x, err := a.post(nil, hello("one-more", "client", 4711))
		require.NoError(t, err)
		status, text := x.refused()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, fmt.Sprintf("%d programs are attached to this agent: no more are", programs.MaxPrograms))
	})
}

// Long names fill the node's tags before that, and the program is told what to do about it.
func TestLimit_OfNames(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		a := c.agents["n1"]
		for i := range programs.MaxPrograms {
			x, err := a.post(nil, hello(fmt.Sprintf("%s-%d", strings.Repeat("long", 10), i), "client", 4711))
			require.NoError(t, err)
			defer x.close()
			if x.resp.StatusCode == http.StatusOK {
				continue
			}
			status, text := x.refused()
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, text, "offer fewer or shorter topics")
			require.Greater(t, i, 5)
			return
		}
		require.Fail(t, "there was room for all")
	})
}
