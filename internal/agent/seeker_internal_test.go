package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// joins is an agent that notes whom it was to join; nobody is there.
type joins []string

func (j *joins) Join(_ context.Context, _, addr string) error {
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

// While everybody is there a sidecar only remembers where. When some are missing, also in the next process, it has its agent join the places of those that are not
// in its list, and those of serf.join.
func TestSeeker(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	f, err := config.Parse("sbr.yaml", []byte("system: s\nserf: {rpc: '127.0.0.1:7373', join: ['d:1']}\nsplit-brain-resolver: {min-members: 2}"))
	require.NoError(t, err)
	life := func() (*seeker, *joins) {
		st, err := openState("s", slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		j := &joins{}
		return newSeeker(f, st, j, slog.New(slog.DiscardHandler)), j
	}
	asked := func(j *joins) []string {
		slices.Sort(*j)
		return *j
	}
	s, j := life()
	s.look(t.Context(), view(nil, "a:1", "b:1", "c:1"), true)
	require.Empty(t, *j)
	s.look(t.Context(), view(nil, "a:1", "b:1"), true)
	require.Empty(t, *j, "they are enough")

	s, j = life()
	s.look(t.Context(), view(nil, "a:1"), false)
	require.Empty(t, *j, "not each second")
	s.look(t.Context(), view(nil, "a:1"), true)
	require.Equal(t, []string{"b:1", "c:1", "d:1"}, asked(j))

	s, j = life()
	s.look(t.Context(), view([]string{"n3"}, "a:1", "b:1"), true)
	require.Equal(t, []string{"c:1", "d:1"}, asked(j), "it waits for a survivor")
}

// A cluster larger than what is remembered is no news each second.
func TestSeeker_ALargeClusterIsWrittenOnce(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	st, err := openState("s", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	var places []string
	for i := range 3 * keepPlaces {
		places = append(places, fmt.Sprintf("10.0.0.%d:7946", i))
	}
	st.rememberPlaces(places)
	require.Len(t, st.places(), keepPlaces)
	require.NoError(t, os.Remove(st.seen))
	st.rememberPlaces(places)
	require.NoFileExists(t, st.seen, "it was written again")
}
