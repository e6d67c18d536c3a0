//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A panic in a goroutine of a library is no bad configuration: the exit status must not be 2, after which
// service managers do not start the agent again.
func TestMain_APanicEndsBySignal(t *testing.T) {
	const env = "SBR_TEST_PANICS"
	if os.Getenv(env) != "" {
		abortOnPanic()
		go panic("a packet came too early")
		select {}
	}
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	c.Env, c.Dir = append(os.Environ(), env+"=1"), t.TempDir() // where a core file may land
	out, err := c.CombinedOutput()
	require.Contains(t, string(out), "panic: a packet came too early")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGABRT, exit.Sys().(syscall.WaitStatus).Signal(), "%v", err)
}
