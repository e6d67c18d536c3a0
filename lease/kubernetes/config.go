package kubernetes

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/lease"
)

const (
	defaultNamespace     = "default"
	serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// Config says which lease to use and how to reach it. Start from DefaultConfig and set Name.
type Config struct {
	// Kubeconfig is the path of a kubeconfig file. Empty: the service account of the pod or, outside of a cluster, what kubectl
	// would use (KUBECONFIG, then ~/.kube/config).
	Kubeconfig string
	// Context is the kubeconfig's context. Empty: its current one. Not used with the service account of a pod.
	Context string
	// Namespace of the lease. Empty: the pod's own or the one of the kubeconfig's context, else "default".
	Namespace string
	// Name of the lease. Required; see Name and SanitizeName.
	Name string
	// API is the kind of object that keeps the lease. Empty: Native.
	API API
	// RequestTimeout bounds each request, on both ends: the server drops the work at nine tenths of it, which shortens the time in
	// which an unanswered write can still take place. A lease.Lease bounds its requests by itself, so that an operation has the time of
	// lease-operation-timeout, which is what this should be.
	RequestTimeout time.Duration
	// Logger is told of states of the lease that are odd, or cannot be read. Nil: nobody.
	Logger *slog.Logger
}

// DefaultConfig returns a Config that lacks only its Name.
func DefaultConfig() Config {
	return Config{RequestTimeout: lease.DefaultSettings().OperationTimeout}
}

// Validate returns all problems at once, one per line.
func (c Config) Validate() error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("kubernetes: "+format, args...))
	}
	if c.Name == "" {
		report("the name of the lease is empty: use <system>-sbr")
	} else if wrong := validation.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
		report("%q cannot be the name of a lease: %s%s", c.Name, strings.Join(wrong, "; "), suggestion(c.Name))
	}
	if c.Namespace != "" {
		if wrong := validation.IsDNS1123Label(c.Namespace); len(wrong) > 0 {
			report("%q cannot be a namespace: %s", c.Namespace, strings.Join(wrong, "; "))
		}
	}
	if err := c.API.validate(); err != nil {
		report("%w", err)
	}
	if c.RequestTimeout <= 0 {
		report("the request timeout is %s: it must be positive, best lease-operation-timeout", c.RequestTimeout)
	}
	return errors.Join(problems...)
}

func suggestion(name string) string {
	clean, err := SanitizeName(name, maxName, nameHash)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (for example %q)", clean)
}

func (c Config) api() API { return API(firstOf(string(c.API), string(Native))) }

func (c Config) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// load finds the cluster and the namespace.
func (c Config) load() (*rest.Config, string, error) {
	if c.Kubeconfig == "" {
		inCluster, err := rest.InClusterConfig()
		if err == nil {
			return inCluster, firstOf(c.Namespace, podNamespace(serviceAccountFolder)), nil
		}
		// In a pod without a service account a kubeconfig of another cluster would be worse than the error.
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, "", fmt.Errorf("kubernetes: service account of the pod: %w (is automountServiceAccountToken off?)", err)
		}
	}
	return c.loadKubeconfig()
}

func (c Config) loadKubeconfig() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	rules.WarnIfAllMissing = false // it goes to klog; the error says the same
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = errors.New("not in a pod, and no kubeconfig found: set lease.kubernetes.kubeconfig or KUBECONFIG")
		}
		return nil, "", fmt.Errorf("kubernetes: %w", err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes: %w", err)
	}
	var own string
	if context := raw.Contexts[firstOf(c.Context, raw.CurrentContext)]; context != nil {
		own = context.Namespace
	}
	return cfg, firstOf(c.Namespace, own, podNamespace(serviceAccountFolder)), nil
}

// podNamespace is empty outside of a pod.
func podNamespace(folder string) string {
	text, err := os.ReadFile(folder + "/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func firstOf(candidates ...string) string {
	for _, s := range candidates {
		if s != "" {
			return s
		}
	}
	return ""
}
