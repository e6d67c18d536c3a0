//go:build linux

package guard_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/program"
)

// This executable is the keeper of the programs that the tests run.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "keep" {
		if err := program.Keep(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
