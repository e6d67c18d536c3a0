package world

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The constants of memberlist and Serf that the model keeps are theirs, in each profile.
func TestConstants_AreThoseOfSerf(t *testing.T) {
	for name, c := range map[string]*memberlist.Config{
		"lan": memberlist.DefaultLANConfig(), "wan": memberlist.DefaultWANConfig(), "local": memberlist.DefaultLocalConfig(),
	} {
		m, ok := MemberlistOf(name)
		require.True(t, ok)
		for v := range settings(reflect.ValueOf(m)) {
			theirs := reflect.ValueOf(c).Elem().FieldByName(v)
			require.True(t, theirs.IsValid(), "memberlist has no setting %s", v)
			require.Equal(t, theirs.Interface(), reflect.ValueOf(m).FieldByName(v).Interface(), "%s: %s", name, v)
		}
		require.Equal(t, c.UDPBufferSize, packetSize, name)
	}
	_, ok := MemberlistOf("lam")
	require.False(t, ok)
	s := serf.DefaultConfig()
	require.Equal(t, s.ReconnectInterval, reconnectInterval)
	require.Equal(t, s.ReapInterval, reapInterval)
	require.Equal(t, s.BroadcastTimeout, broadcastTimeout)
	require.Equal(t, s.LeavePropagateDelay, leaveDelay)
	require.Equal(t, constantOf(t, memberlist.DefaultLANConfig, "util.go", "pushPullScaleThreshold"),
		exchangeThreshold)
	wan, _ := MemberlistOf("wan")
	require.Equal(t, maxAccusers, wan.SuspicionMult-2+1)
}

// settings are the names of the fields of a struct, also of those within it.
func settings(v reflect.Value) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if !f.Anonymous && !yield(f.Name) {
				return
			}
		}
	}
}

// constantOf reads a constant that is not exported from a source file beside the one of a function.
func constantOf(t *testing.T, beside any, file, name string) int {
	t.Helper()
	at, _ := runtime.FuncForPC(reflect.ValueOf(beside).Pointer()).FileLine(reflect.ValueOf(beside).Pointer())
	text, err := os.ReadFile(filepath.Join(filepath.Dir(at), file))
	require.NoError(t, err)
	found := regexp.MustCompile(name + ` += (\d+)`).FindSubmatch(text)
	require.NotNil(t, found, name)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return n
}

// What production keeps by default, a world keeps by default.
func TestConstants_AreThoseOfProduction(t *testing.T) {
	o := DefaultOptions()
	require.Equal(t, sbr.DefaultConfig(), o.Resolver)
	lan, _ := MemberlistOf("lan")
	require.Equal(t, lan, o.Serf)
	require.Equal(t, lease.DefaultSettings(), o.Store.Settings)
}
