package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
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
	// Kubeconfig is the path of a kubeconfig file. Empty: the service account of the pod or, outside of a
	// cluster, what kubectl would use (KUBECONFIG, then ~/.kube/config).
	Kubeconfig string
	// Context is the kubeconfig's context. Empty: its current one. Not used with the service account of a
	// pod.
	Context string
	// Namespace of the lease. Empty: the pod's own or the one of the kubeconfig's context, else "default".
	Namespace string
	// Name of the lease. Required; see Name and LeaseName.
	Name string
	// API is the kind of object that keeps the lease. Empty: Native.
	API API
	// RequestTimeout bounds each request, on both ends: the server drops the work at nine tenths of it, which
	// shortens the time in which an unanswered write can still take place. A lease.Lease bounds its requests
	// by itself, so that an operation has the time of lease-operation-timeout, which is what this should be.
	RequestTimeout time.Duration
	// Logger gets states of the lease that are odd, or cannot be read. Nil: no log.
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
	clean, err := sanitizeName(name)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (for example %q)", clean)
}

func (c Config) api() API { return cmp.Or(c.API, Native) }

func (c Config) logger() *slog.Logger { return cmp.Or(c.Logger, slog.New(slog.DiscardHandler)) }

// load finds the cluster and the namespace.
func (c Config) load() (*rest.Config, string, error) {
	if c.Kubeconfig == "" {
		inCluster, err := rest.InClusterConfig()
		if err == nil {
			return inCluster, cmp.Or(c.Namespace, podNamespace(serviceAccountFolder)), nil
		}
		// In a pod without a service account a kubeconfig of another cluster would be worse than the error.
		if !errors.Is(err, rest.ErrNotInCluster) {
			return nil, "",
				fmt.Errorf("kubernetes: service account of the pod: %w (is automountServiceAccountToken off?)", err)
		}
	}
	return c.loadKubeconfig()
}

func (c Config) loadKubeconfig() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	rules.WarnIfAllMissing = false // it goes to klog; the error says the same
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: c.Context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		if clientcmd.IsEmptyConfig(err) {
			err = fmt.Errorf("this is no pod, and there is no kubeconfig %s: set lease.kubernetes.kubeconfig or KUBECONFIG",
				strings.Join(rules.Precedence, ", "))
		} else if file, _, junk := strings.Cut(err.Error(), ": couldn't get version/kind"); junk {
			err = errors.New(file + ": it is no kubeconfig")
		}
		return nil, "", fmt.Errorf("kubernetes: %w", err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes: %w", err)
	}
	var own string
	if context := raw.Contexts[cmp.Or(c.Context, raw.CurrentContext)]; context != nil {
		own = context.Namespace
	}
	return cfg, cmp.Or(c.Namespace, own, podNamespace(serviceAccountFolder)), nil
}

// podNamespace is empty outside of a pod.
func podNamespace(folder string) string {
	text, err := os.ReadFile(folder + "/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// section is what a configuration file may say of this implementation.
type section struct {
	Namespace  string `json:"namespace"  yaml:"namespace"`
	Kubeconfig string `json:"kubeconfig" yaml:"kubeconfig"`
	Context    string `json:"context"    yaml:"context"`
	API        API    `json:"api"        yaml:"api"`
}

// Factory returns the implementation for lease.Register, configured by namespace, kubeconfig, context and
// api. It sanitises the lease's name; an empty one becomes "<system>-sbr". No request outlives the lease's
// operation timeout. Its stores are *Store. log is used where the lease.Spec has none; it may be nil.
func Factory(log *slog.Logger) lease.Factory {
	return func(_ context.Context, spec lease.Spec) (lease.Store, error) {
		var set section
		if err := spec.Configure(&set); err != nil {
			return nil, err
		}
		cfg := DefaultConfig()
		cfg.Namespace, cfg.Kubeconfig, cfg.Context, cfg.API = set.Namespace, set.Kubeconfig, set.Context, set.API
		cfg.Logger = cmp.Or(spec.Logger, log)
		cfg.RequestTimeout = cmp.Or(spec.Settings.OperationTimeout, cfg.RequestTimeout)
		var err error
		if cfg.Name, err = LeaseName(spec.System, spec.Name); err != nil {
			return nil, err
		}
		s, err := New(cfg)
		if err != nil {
			return nil, err
		}
		if spec.Name != "" && spec.Name != cfg.Name {
			cfg.logger().Info("the lease has another name in Kubernetes", slog.String("lease-name", spec.Name),
				slog.String("lease", s.String()))
		}
		return s, nil
	}
}

const (
	maxName    = 63
	nameHash   = 8
	nameSuffix = "-sbr"
)

var nameEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Name returns the default name of a system's lease: "<system>-sbr", sanitised to at most 63 characters.
func Name(system string) string {
	name, _ := sanitizeName(system + nameSuffix) // the suffix alone is a name
	return name
}

// LeaseName returns what the lease called lease-name is called in Kubernetes, and Name(system) if it is
// empty: decomposed (NFKD), in lower case, with "-" for "_" and ".", and without everything else but letters,
// digits and inner hyphens. What is longer than 63 characters is cut and, so that two long names stay two,
// ends in a hash of the original. It is an error if nothing is left. Short names that differ only in what is
// replaced or dropped do become equal: "a.b" and "a-b".
func LeaseName(system, leaseName string) (string, error) {
	if leaseName == "" {
		return Name(system), nil
	}
	name, err := sanitizeName(leaseName)
	if err != nil {
		return "", fmt.Errorf("lease-name: %w", err)
	}
	return name, nil
}

func sanitizeName(name string) (string, error) {
	clean := strings.Map(nameRune, strings.ToLower(norm.NFKD.String(name)))
	if len(clean) > maxName {
		// not of the clean text: names that differ only in what was dropped stay apart
		sum := sha256.Sum256([]byte(name))
		hash := nameEncoding.EncodeToString(sum[:])[:nameHash]
		clean = strings.Trim(clean[:maxName-nameHash-1], "-") + "-" + hash
	}
	clean = strings.Trim(clean, "-")
	if clean == "" {
		return "", fmt.Errorf("kubernetes: nothing of the name %q is allowed in the name of a lease: it needs at least one letter a-z or digit", name)
	}
	return clean, nil
}

func nameRune(r rune) rune {
	switch {
	case r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z':
		return r
	case r == '_' || r == '.':
		return '-'
	default:
		return -1
	}
}

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package
// makes it known to lease.Open.
const Key = "kubernetes"

func init() { lease.Register(Key, Factory(nil)) }
