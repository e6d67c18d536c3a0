package kubernetes

import (
	"context"
	"log/slog"

	"github.com/serf-sbr/serf-sbr/lease"
)

// section is what a configuration file may say of this implementation.
type section struct {
	Namespace  string `json:"namespace"  yaml:"namespace"`
	Kubeconfig string `json:"kubeconfig" yaml:"kubeconfig"`
	Context    string `json:"context"    yaml:"context"`
	API        API    `json:"api"        yaml:"api"`
}

// Factory returns the implementation for lease.Register, configured by namespace, kubeconfig, context and api. It sanitises the
// lease's name; an empty one becomes "<system>-sbr". No request outlives the lease's operation timeout. Its stores
// are *Store: whoever wants a Preflight asserts for a method of that name. log is used where the lease.Spec has none; it may be nil.
func Factory(log *slog.Logger) lease.Factory {
	return func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		var set section
		if err := spec.Configure(&set); err != nil {
			return nil, err
		}
		cfg := DefaultConfig()
		cfg.Namespace, cfg.Kubeconfig, cfg.Context, cfg.API = set.Namespace, set.Kubeconfig, set.Context, set.API
		if cfg.Logger = spec.Logger; cfg.Logger == nil {
			cfg.Logger = log
		}
		if spec.Settings.OperationTimeout > 0 {
			cfg.RequestTimeout = spec.Settings.OperationTimeout
		}
		var err error
		if cfg.Name, err = LeaseName(spec.System, spec.Name); err != nil {
			return nil, err
		}
		s, err := New(cfg)
		if err != nil {
			return nil, err
		}
		if spec.Name != "" && spec.Name != cfg.Name {
			cfg.logger().Info("the lease has another name in Kubernetes", slog.String("lease-name", spec.Name), slog.String("lease", s.String()))
		}
		return s, nil
	}
}
