package deploy_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/kubetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(kubetest.M(m)) }
