package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
)

const manifestsHelp = `Manifests prints what the store of the lease needs before the members start.

For Kubernetes that is the empty lease, a Role with the rights to that one lease and no more, and a RoleBinding for the members' service
account. Pipe it into kubectl apply -f -. For PostgreSQL (--store postgres, or a configuration that says so) it is the table of all leases,
and the rights of the members' role to it: to select, insert and update. Pipe it into psql, as the owner of the schema.

The members may create the lease as well, so that one that was deleted is made again; with --create=false it has to be made by somebody else, and while it is
missing no member starts and no side wins. With --api akka or pekko the lease is the
custom resource that Akka or Pekko services use; --crd prints its definition too, which takes a cluster administrator, once.

With --singleton it is the lease of that singleton, <system>-singleton-<name>, which members need where singleton.use-lease is kubernetes: once for each.

The names come from the configuration (-f sbr.yaml) or from --system and --lease-name; those of PostgreSQL from -f and --role.`

// manifestFlags are the flags of `sbr manifests`.
type manifestFlags struct {
	file, system, leaseName, singleton, namespace, account, api, store, role string
	create, noLease, crd                                                     bool
}

func newManifests(s streams) *cobra.Command {
	var m manifestFlags
	c := &cobra.Command{
		Use: "manifests", Short: "print what Kubernetes or PostgreSQL needs for the lease", Long: manifestsHelp,
		Args: cobra.NoArgs,
		Example: "  sbr manifests --system payments -n shop --service-account payments | kubectl apply -f -\n" +
			"  sbr manifests --store postgres --role payments | psql -d payments",
	}
	flags := c.Flags()
	addConfig(flags, &m.file, " that names the lease")
	flags.StringVar(&m.system, "system", "", "name of the cluster; the lease is <system>-sbr")
	flags.StringVar(&m.leaseName, "lease-name", "", "name of the lease, where it is another one")
	flags.StringVar(&m.singleton, "singleton", "",
		"print those for the lease of this singleton instead of the resolver's")
	c.MarkFlagsMutuallyExclusive("singleton", "lease-name")
	flags.StringVarP(&m.namespace, "namespace", "n", "",
		`namespace of everything (default "default", or the configuration's)`)
	flags.StringVar(&m.account, "service-account", "default", "the service account that the members run as")
	flags.Var(word{&m.api, leaseAPIs}, "api", "whose Lease object (default native, or the configuration's)")
	flags.BoolVar(&m.create, "create", true,
		"let the members create the lease, so that one that was deleted is made again")
	flags.BoolVar(&m.noLease, "no-lease", false, "do not print the lease: the members create it")
	flags.BoolVar(&m.crd, "crd", false, "print the CustomResourceDefinition as well")
	stores := []string{config.ImplementationKubernetes, config.ImplementationPostgres}
	flags.Var(word{&m.store, stores}, "store", `which store (default "kubernetes", or the configuration's)`)
	flags.StringVar(&m.role, "role", "sbr", "the role of PostgreSQL that the members log in as")
	output := addWord(c, "output", "o", "yaml", "how they are written", "yaml", "json")
	c.RunE = verb(func() error {
		f, store, err := m.place()
		if err == nil {
			err = checkForeign(flags, store)
		}
		if err != nil {
			return badInput{err}
		}
		if store == config.ImplementationPostgres {
			_, err := io.WriteString(s.out, postgres.Schema(f.Lease.Postgres.Table, m.role))
			return err
		}
		o, err := m.options(f)
		if err == nil {
			err = o.Validate()
		}
		if err != nil {
			return badInput{err}
		}
		if m.namespace == "" && f.Lease.Kubernetes.Namespace == "" { // what the members find is not known here
			fmt.Fprintf(s.err, "sbr: the namespace is %s: lease.kubernetes.namespace is not set, and members then take "+
				"that of their pod or kubeconfig: give -n, if that is another one\n", o.Namespace)
		}
		if *output == formatJSON {
			return manifest.WriteJSON(s.out, o)
		}
		return manifest.Write(s.out, o)
	})
	return c
}

// place is the store, and the configuration, which is that of an empty file where none is given.
func (m *manifestFlags) place() (f *config.File, store string, err error) {
	f, store = new(config.Default()), cmp.Or(m.store, config.ImplementationKubernetes)
	if m.file == "" {
		return f, store, nil
	}
	if f, err = config.Load(m.file); err != nil || m.store != "" {
		return f, store, err
	}
	chosen, err := f.LeaseStore()
	switch {
	case err != nil:
		return f, "", err
	case m.singleton != "":
		return f, store, nil
	case chosen != config.ImplementationKubernetes && chosen != config.ImplementationPostgres:
		return f, "", fmt.Errorf("%s: Kubernetes does not keep the lease of %s: there is nothing to print",
			m.file, f.System)
	}
	return f, chosen, nil
}

// checkForeign refuses the flags of the other store.
func checkForeign(flags *pflag.FlagSet, store string) error {
	foreign := []string{"role"}
	if store == config.ImplementationPostgres {
		foreign = []string{
			"system", "lease-name", "singleton", "namespace", "service-account", "api", "create", "no-lease", "crd", "output",
		}
	}
	for _, name := range foreign {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is not for the store %s", name, store)
		}
	}
	return nil
}

func (m *manifestFlags) options(f *config.File) (manifest.Options, error) {
	o, k := manifest.DefaultOptions(), &f.Lease.Kubernetes
	if o.System = cmp.Or(m.system, f.System); m.system == "" && f.System != "" {
		o.Name = f.LeaseName()
	}
	o.Name = cmp.Or(m.leaseName, o.Name)
	if m.singleton != "" {
		if o.System == "" {
			return o, errors.New("--singleton without a system: give -f or --system")
		}
		o.Name = (&config.File{System: o.System}).SingletonLeaseName(m.singleton)
	}
	o.Namespace = cmp.Or(m.namespace, k.Namespace, o.Namespace)
	o.API = kubernetes.API(cmp.Or(m.api, k.API, string(o.API)))
	o.ServiceAccount, o.Create, o.CRD = m.account, m.create, m.crd
	if o.PreMade = !m.noLease; m.noLease && !m.create {
		return o, errors.New("--no-lease with --create=false: nothing would make the lease")
	}
	return o, nil
}
