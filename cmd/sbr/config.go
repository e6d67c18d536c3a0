package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/mongodb"
	"github.com/serf-sbr/serf-sbr/lease/postgres"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

const configCheckHelp = `Check reads a configuration strictly and prints what it amounts to: all settings with their defaults and computed values (secrets
are hidden), and the times that follow from them in a cluster of so many members: how soon each side notices a cut, decides,
and how long both sides may be up. Settings that are allowed but unsafe are named as warnings; they do not change the exit status.
A configuration that needs a lease and does not say where it is kept is refused, as by sbr agent.

The text form is a configuration again, with the times as comments.`

const maxConfigInput = 1 << 20

// question says for which cluster times are computed.
type question struct {
	members, least int
	profile        string
}

// addQuestion gives a command the flags of a question about clusters of at least so many members.
func addQuestion(c *cobra.Command, least int) *question {
	q := question{least: least}
	c.Flags().IntVar(&q.members, "members", 0,
		"the number of members to compute with (default 5, or min-members if that is more)")
	c.Flags().Var(word{&q.profile, timing.Profiles()}, "profile",
		"the settings of Serf's failure detector (default: the file's serf.profile)")
	return &q
}

// validate checks the flags that were given.
func (q *question) validate(c *cobra.Command) error {
	if c.Flags().Changed("members") && (q.members < q.least || q.members > config.MaxMembers) {
		return badInput{fmt.Errorf("--members %d: it must be from %d to %d", q.members, q.least, config.MaxMembers)}
	}
	return nil
}

// readConfig reads a configuration from a file, or from the standard input. Its errors are the caller's.
func readConfig(path string, stdin io.Reader) (name string, f *config.File, err error) {
	name, data, err := readInput(path, stdin, maxConfigInput)
	if err != nil {
		return name, nil, err
	}
	f, err = config.Parse(name, data)
	return name, f, err
}

func newConfigCheck(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "check [-f FILE]", Short: "check a configuration and compute its timings",
		Long: configCheckHelp, Example: "  sbr config check -f sbr.yaml --members 20", Args: cobra.NoArgs,
	}
	output, q := addFormat(c), addQuestion(c, 1)
	var file string
	addConfig(c.Flags(), &file, " instead of the standard input")
	c.RunE = verb(func() error {
		if err := q.validate(c); err != nil {
			return err
		}
		name, f, err := readConfig(file, s.in)
		var store, lease string
		if err == nil {
			err = checkServers(name, f)
		}
		if err == nil {
			store, err = f.LeaseStore()
		}
		if err == nil {
			lease, err = nameIn(store, f.LeaseName())
		}
		if err != nil {
			return badInput{err}
		}
		profile := cmp.Or(q.profile, f.Serf.Profile)
		in, report := f.Times(q.members, profile)
		answer := checkAnswer{
			Valid: true, Digest: f.Digest(), LeaseName: lease, Members: in.Members, Profile: profile,
			Timing: newTimingAnswer(in, &report), assumed: q.members == 0,
			Warnings: append(report.Warnings, placeWarnings(f, store)...),
		}
		effective := f.Redacted().Effective()
		if err := yaml.Unmarshal(effective, &answer.Config); err != nil {
			return fmt.Errorf("the effective configuration does not read back: %w", err)
		}
		return s.show(*output, answer, func(p painter) string {
			return answer.text(p, name+" is valid: "+strategyLine(f, lease), effective, report.Table(), in.Auto)
		})
	})
	return c
}

// outside is in a URL that is read together with files or DNS records, which may come later.
var outside = regexp.MustCompile(`cert|sslkey|service|File|\+srv`)

// checkServers checks what the stores read from the configuration itself. The values are secrets: not shown.
func checkServers(name string, f *config.File) error {
	const timeout = time.Second // of connections, which nobody makes
	var problems []error
	if url := f.Lease.Postgres.URL; url != "" && !outside.MatchString(url) {
		if _, err := postgres.Config(url, timeout); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	if uri := f.Lease.MongoDB.URI; uri != "" && !outside.MatchString(uri) &&
		mongodb.Options(uri, timeout).Validate() != nil {
		problems = append(problems, fmt.Errorf("%s: mongodb: lease.mongodb.uri is not valid: "+
			"mongodb://USER@HOST,HOST/?replicaSet=NAME is", name))
	}
	return errors.Join(problems...)
}

// nameIn is what a store calls the lease of that name.
func nameIn(store, name string) (string, error) {
	if store != config.ImplementationKubernetes {
		return name, nil
	}
	return kubernetes.LeaseName("", name)
}

// placeWarnings are about what others share or reach: the leases in their store, and the page.
func placeWarnings(f *config.File, store string) (ws []timing.Warning) {
	key := "lease-name"
	if strings.TrimSpace(f.SplitBrainResolver.LeaseMajority.LeaseName) == "" {
		key = "system"
	}
	for _, lease := range []struct{ store, key, name string }{
		{store, key, f.LeaseName()}, {f.Singleton.UseLease, "system", f.SingletonLeaseName("x")},
	} {
		if name, err := nameIn(lease.store, lease.name); err == nil && name != lease.name {
			ws = append(ws, timing.Warning{Key: lease.key,
				Text: fmt.Sprintf("the lease %s is called %s in Kubernetes: "+
					"another cluster whose name becomes the same would share the lease: "+
					"give a name of lower-case letters, digits and -", lease.name, name)})
		}
	}
	if !f.HTTP.Loopback() {
		ws = append(ws, f.HTTP.Exposes()...)
	}
	return ws
}

// checkAnswer is what `sbr config check -o json` prints. All durations are Go duration strings.
type checkAnswer struct {
	Valid     bool             `json:"valid"`
	Digest    string           `json:"digest"`
	LeaseName string           `json:"lease-name"`
	Members   int              `json:"members"`
	Profile   string           `json:"profile"`
	Config    any              `json:"config"`
	Timing    timingAnswer     `json:"timing"`
	Warnings  []timing.Warning `json:"warnings"`

	assumed bool // nobody said how many members there are
}

// strategyLine says in one line what the file stands for.
func strategyLine(f *config.File, lease string) string {
	strategy := strings.ToLower(f.SplitBrainResolver.ActiveStrategy)
	line := fmt.Sprintf("system %s, strategy %s", f.System, strategy)
	if f.SplitBrainResolver.NeedsLease() {
		line += fmt.Sprintf(" over the lease %s (%s)", lease,
			f.SplitBrainResolver.LeaseMajority.LeaseImplementation)
	}
	return line + ", digest " + f.Digest()
}

// timingAnswer is the JSON form of a timing.Report.
type timingAnswer struct {
	Detection struct {
		Serf      timing.Sides `json:"serf"`
		OwnProbes timing.Sides `json:"own-probes"`
		Both      timing.Sides `json:"both"`
	} `json:"detection"`
	LargestGap          string       `json:"largest-gap"`
	Decision            timing.Sides `json:"decision"`
	Resolution          string       `json:"resolution"`
	ResolutionStoreDown string       `json:"resolution-store-down"`
	DoubleActive        struct {
		Watching string `json:"watching"`
		Asking   string `json:"asking"`
		CutOff   string `json:"cut-off"`
	} `json:"double-active"`
	StableAfter              string `json:"stable-after"`
	RecommendedStableAfter   string `json:"recommended-stable-after"`
	RecommendedMinorityDelay string `json:"recommended-minority-delay"`
}

func newTimingAnswer(in timing.Input, r *timing.Report) (a timingAnswer) {
	a.StableAfter = in.StableAfter.String()
	a.Detection.Serf, a.Detection.OwnProbes, a.Detection.Both = r.Serf, r.Probes, r.Detection
	a.LargestGap = r.LargestGap.String()
	a.Decision = r.Decision
	a.Resolution, a.ResolutionStoreDown = r.Resolution.String(), r.ResolutionStoreDown.String()
	a.DoubleActive.Watching = r.DoubleActive.Watching.String()
	a.DoubleActive.Asking = r.DoubleActive.Asking.String()
	a.DoubleActive.CutOff = r.DoubleActive.CutOff.String()
	a.RecommendedStableAfter, a.RecommendedMinorityDelay = r.StableAfter.String(), r.MinorityDelay.String()
	return a
}

// text is the effective configuration, and as comments what it is and what follows from it.
func (a *checkAnswer) text(p painter, title string, effective []byte, times [][]string, auto bool) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.bold("# "+title+"."))
	b.Write(effective)
	assumed := ""
	if a.assumed {
		assumed = " (give --members for yours)"
	}
	fmt.Fprintf(&b, "\n%s\n", p.bold(fmt.Sprintf("# Times of a clean cut, %d members%s, Serf profile %s:",
		a.Members, assumed, a.Profile)))
	if auto {
		fmt.Fprintf(&b, "# stable-after is auto: %s for %d members.\n", a.Timing.StableAfter, a.Members)
	}
	lines := append([][]string{{"", "larger half", "a lone node"}}, times...)
	for line := range strings.Lines(table(lines...)) {
		b.WriteString("#   " + line)
	}
	for _, w := range a.Warnings {
		fmt.Fprintln(&b, p.yellow("# warning: "+w.String()))
	}
	return b.String()
}

const configInitHelp = `Init prints a configuration with every key, a sentence on each, and its default. What is a comment can be changed by taking the # away.

The file is valid as it is printed. It still needs where the lease is kept, if that is not the pod's own cluster, and min-members:
a majority of the cluster.`

func newConfigInit(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "init", Short: "print a commented configuration to start from", Long: configInitHelp,
		Example: "  sbr config init --system payments > sbr.yaml\n  sbr config init --system payments --lease-implementation file --set lease.file.path=/run/payments.lease",
		Args:    cobra.NoArgs,
	}
	system := c.Flags().String("system", "my-cluster", "the name of the cluster")
	implementation := addWord(c, "lease-implementation", "", config.ImplementationKubernetes,
		"which store keeps the lease: a `KEY` of the block lease", config.Implementations()...)
	set := c.Flags().StringToString("set", nil, "other keys to set, by their paths")
	c.RunE = verb(func() error {
		if *system == "" {
			return badInput{errors.New("--system is empty: it must name the cluster")}
		}
		values := map[string]string{"system": *system,
			"split-brain-resolver.lease-majority.lease-implementation": *implementation}
		maps.Copy(values, *set)
		file, err := config.Template(values)
		if err != nil {
			return badInput{err}
		}
		_, err = s.out.Write(file)
		return err
	})
	return c
}
