package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
)

const manifestsHelp = `Manifests prints what Kubernetes needs to know before the members start: the empty lease, a Role with the rights to that one lease and
no more, and a RoleBinding for the members' service account. Pipe it into kubectl apply -f -.

The members may create the lease as well, so that one that was deleted is made again; with --create=false it has to be made by somebody else, and while it is
missing no member starts and no side wins. With --api akka or pekko the lease is the
custom resource that Akka or Pekko services use; --crd prints its definition too, which takes a cluster administrator, once.

With --singleton it is the lease of that singleton, <system>-singleton-<name>, which members need where singleton.use-lease is kubernetes: once for each.

The names come from the configuration (-f sbr.yaml) or from --system and --lease-name.`

// manifestFlags are the flags of `sbr manifests`.
type manifestFlags struct {
	file, system, leaseName, singleton, namespace, account, api string
	create, noLease, crd                                        bool
}

func newManifests(s streams) *cobra.Command {
	var m manifestFlags
	c := &cobra.Command{
		Use: "manifests", Short: "print the Role, RoleBinding and Lease that Kubernetes needs", Long: manifestsHelp, Args: cobra.NoArgs,
		Example: "  sbr manifests --system payments -n shop --service-account payments | kubectl apply -f -",
	}
	flags := c.Flags()
	addConfig(flags, &m.file, " that names the lease")
	flags.StringVar(&m.system, "system", "", "name of the cluster; the lease is <system>-sbr")
	flags.StringVar(&m.leaseName, "lease-name", "", "name of the lease, where it is another one")
	flags.StringVar(&m.singleton, "singleton", "", "print those for the lease of this singleton instead of the resolver's")
	c.MarkFlagsMutuallyExclusive("singleton", "lease-name")
	flags.StringVarP(&m.namespace, "namespace", "n", "", `namespace of everything (default "default", or the configuration's)`)
	flags.StringVar(&m.account, "service-account", "default", "the service account that the members run as")
	flags.StringVar(&m.api, "api", "", "whose Lease object: native, akka or pekko (default native, or the configuration's)")
	flags.BoolVar(&m.create, "create", true, "let the members create the lease, so that one that was deleted is made again")
	flags.BoolVar(&m.noLease, "no-lease", false, "do not print the lease: the members create it")
	flags.BoolVar(&m.crd, "crd", false, "print the CustomResourceDefinition as well")
	output := addWord(c, "output", "o", "yaml", "how they are written", "yaml", "json")
	c.RunE = verb(func() error {
		o, err := m.options()
		if err == nil {
			err = o.Validate()
		}
		if err != nil {
			return badInput{err}
		}
		if *output == formatJSON {
			return manifest.WriteJSON(s.out, o)
		}
		return manifest.Write(s.out, o)
	})
	return c
}

func (m *manifestFlags) options() (manifest.Options, error) {
	o := manifest.DefaultOptions()
	if m.file != "" {
		f, err := config.Load(m.file)
		if err != nil {
			return o, err
		}
		if store, err := f.LeaseStore(); err != nil {
			return o, err
		} else if m.singleton == "" && store != config.ImplementationKubernetes {
			return o, fmt.Errorf("%s: Kubernetes does not keep the lease of %s: there is nothing to print", m.file, f.System)
		}
		k := &f.Lease.Kubernetes
		o.System, o.Name = f.System, f.LeaseName()
		o.Namespace, o.API = cmp.Or(k.Namespace, o.Namespace), kubernetes.API(cmp.Or(k.API, string(o.API)))
	}
	if m.system != "" {
		o.System, o.Name = m.system, ""
	}
	o.Name = cmp.Or(m.leaseName, o.Name)
	if m.singleton != "" {
		if o.System == "" {
			return o, errors.New("--singleton without a system: give -f or --system")
		}
		o.Name = (&config.File{System: o.System}).SingletonLeaseName(m.singleton)
	}
	o.Namespace, o.API = cmp.Or(m.namespace, o.Namespace), kubernetes.API(cmp.Or(m.api, string(o.API)))
	o.ServiceAccount, o.Create, o.CRD = m.account, m.create, m.crd
	if o.PreMade = !m.noLease; m.noLease && !m.create {
		return o, errors.New("--no-lease with --create=false: nothing would make the lease")
	}
	return o, nil
}
