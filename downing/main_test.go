package downing_test

import (
	"os"
	"testing"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }
