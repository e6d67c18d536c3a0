package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// systemd is its end of sd_notify(3), for agents that are started after it.
func systemd(t *testing.T, watchdog string) (heard func(within time.Duration) string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", watchdog)
	return func(within time.Duration) string {
		t.Helper()
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(within)))
		text := make([]byte, 1024)
		n, err := conn.Read(text)
		if err != nil {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		return string(text[:n])
	}
}

// Under systemd a member is ready once it may work, not before, and says from then on that it runs, to its
// end.
func TestRun_TellsSystemd(t *testing.T) {
	home(t)
	heard := systemd(t, "300000")
	n1 := start(t, own("n1", nil, "split-brain-resolver: {min-members: 2}"))
	n1.becomes("alone", func() bool {
		_, text := n1.get("/healthz/ready")
		return text == "arming: 1 of min-members 2 are here"
	})
	require.Empty(t, heard(time.Second), "this member must not get work yet")

	n2 := start(t, own("n2", n1, ""))
	require.Equal(t, "READY=1", heard(bound))
	n1.ready()
	n2.ready()
	n1.leaves()
	n2.leaves()
	said := make(map[string]int)
	for text := heard(time.Second); text != ""; text = heard(time.Second) { // what is still in the socket
		said[text]++
	}
	require.Equal(t, 1, said["READY=1"], "of the other member")
	require.NotZero(t, said["WATCHDOG=1"])
}

// A watchdog that is not asked for gets nothing.
func TestRun_TellsSystemdOnce(t *testing.T) {
	home(t)
	heard := systemd(t, "")
	start(t, own("n1", nil, "")).ready()
	require.Equal(t, "READY=1", heard(bound))
	require.Empty(t, heard(time.Second))
}
