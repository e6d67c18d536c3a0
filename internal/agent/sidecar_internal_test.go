package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// asked is an agent that notes whom it was to join; nobody is there.
type asked []string

func (j *asked) Join(_ context.Context, _, addr string) error {
	*j = append(*j, addr)
	return errors.New("nobody is there")
}

func view(awaiting []string, reachable ...string) (s downing.Status) {
	for _, address := range reachable {
		s.Members = append(s.Members, downing.MemberStatus{Address: address, Reachable: true})
	}
	s.Awaiting = awaiting
	return s
}

// The addresses of serf.join at which nobody is are joined: often while members are missing, now and then for
// ever.
func TestSeeker(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("sbr.yaml", []byte("system: s\nserf: {rpc: '127.0.0.1:7373', join: ['a:1', 'b:1', 'c:1']}\n"+
		"split-brain-resolver: {min-members: 2}"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		st    downing.Status
		rests bool
		want  []string
	}{
		"all are here":                       {view(nil, "a:1", "b:1", "c:1"), true, nil},
		"too few":                            {view(nil, "a:1"), false, []string{"b:1", "c:1"}},
		"it waits for members":               {view([]string{"n3"}, "a:1", "b:1"), false, []string{"c:1"}},
		"nobody seems to be missing":         {view(nil, "a:1", "b:1"), false, nil},
		"the same, when it has been a while": {view(nil, "a:1", "b:1"), true, []string{"c:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j asked
			newRejoiner(f, &j, slog.New(slog.DiscardHandler)).look(t.Context(), c.st, c.rests)
			slices.Sort(j)
			require.Equal(t, c.want, []string(j))
		})
	}
}

// It goes on for ever: a member that does not answer the first try may come later.
func TestSeeker_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j asked
		s := &rejoiner{join: []string{"a:1"}, agent: &j, joins: joins{log: slog.New(slog.DiscardHandler)}}
		s.start(func() downing.Status { return view([]string{"n1"}) })
		time.Sleep(time.Hour)
		s.close()
		require.Len(t, j, 360)
	})
}
