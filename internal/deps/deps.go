// Package deps pins versions while the house is being built; it goes before the first release.
package deps

import (
	_ "github.com/agnivade/levenshtein"
	_ "github.com/hashicorp/memberlist"
	_ "github.com/hashicorp/serf/serf"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "go.opentelemetry.io/otel/metric"
	_ "go.opentelemetry.io/otel/sdk/metric"
	_ "go.opentelemetry.io/otel/trace"
	_ "go.yaml.in/yaml/v3"
	_ "k8s.io/api/coordination/v1"
	_ "k8s.io/client-go/rest"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "go.uber.org/goleak"
	_ "golang.org/x/term"
	_ "golang.org/x/sync/errgroup"
	_ "pgregory.net/rapid"
)
