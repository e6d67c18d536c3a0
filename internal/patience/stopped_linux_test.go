package patience_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

func TestMain(m *testing.M) {
	if os.Getenv("PATIENCE_CHILD") == "" {
		os.Exit(m.Run())
	}
	limit := 2 * time.Second
	ctx, cancel := patience.WithTimeout(context.Background(), limit, errOver)
	defer cancel()
	fmt.Println("begun")
	<-ctx.Done()
	fmt.Println("over")
}

// A process that is stopped for longer than the limit, and goes on, has nearly all of it left.
func TestWithTimeout_AStandstillIsNotCounted(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "PATIENCE_CHILD=1")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	defer func() { _ = child.Wait() }()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	require.Eventually(t, func() bool { return time.Since(stopped) > 2500*time.Millisecond }, time.Minute,
		50*time.Millisecond)
	goesOn := time.Now()
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	require.True(t, lines.Scan())
	require.Equal(t, "over", strings.TrimSpace(lines.Text()))
	require.Greater(t, time.Since(goesOn), time.Second)
}
