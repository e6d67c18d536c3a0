package deploy_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The tests run in the folder that they are about.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../deploy"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(kubetest.M(m))
}
