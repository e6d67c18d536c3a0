package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

const leaseDoctorHelp = `Doctor tries everything that the lease needs, and says what works, what does not, and what to do about it: the place of the lease, the
credentials, each right, the object, file or row, how long a request takes, whether the clocks agree, what would lose an acknowledged write,
who holds the lease and what the last verdict was. It changes nothing: writes are dry runs.

Exit statuses: 0 all is well (there may be warnings), 1 something does not work, 2 bad usage.`

func newLeaseDoctor(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "find out why a lease does not work", Long: leaseDoctorHelp,
		Example: "  sbr lease doctor -f sbr.yaml\n  sbr lease doctor payments-sbr --kubeconfig ~/.kube/config -n shop",
	}
	flags, output := addLease(c), addFormat(c)
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		t, err := flags.target()
		if err != nil {
			return err
		}
		d := t.diagnose(ctx)
		err = s.show(*output, d, d.text)
		if err == nil && !d.Healthy {
			err = errors.New("the lease does not work: see above")
		}
		return err
	})
	return c
}

// diagnosis is what `sbr lease doctor -o json` prints.
type diagnosis struct {
	Lease     string               `json:"lease"`
	Healthy   bool                 `json:"healthy"`
	Server    string               `json:"server,omitempty"`
	User      string               `json:"user,omitempty"`
	RoundTrip *roundTrips          `json:"round-trip,omitempty"`
	Clock     string               `json:"clock-difference,omitempty"`
	Findings  []kubernetes.Finding `json:"findings"`
	State     *leaseAnswer         `json:"state,omitempty"`
	Settings  map[string]string    `json:"settings"`
}

// roundTrips are the times of requests.
type roundTrips struct {
	Shortest string `json:"shortest"`
	Median   string `json:"median"`
	Longest  string `json:"longest"`
}

func (t *target) diagnose(ctx context.Context) *diagnosis {
	d := &diagnosis{Settings: map[string]string{
		"heartbeat-timeout": t.settings.HeartbeatTimeout.String(), "heartbeat-interval": t.settings.Interval().String(),
		"lease-operation-timeout": t.settings.OperationTimeout.String(),
	}}
	if t.implementation == config.ImplementationKubernetes {
		t.diagnoseKubernetes(ctx, d)
	} else {
		t.diagnoseStore(ctx, d)
	}
	return d
}

func (t *target) diagnoseKubernetes(ctx context.Context, d *diagnosis) {
	k, cfg := &t.config.Lease.Kubernetes, kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Context, cfg.Namespace, cfg.API = k.Kubeconfig, k.Context, k.Namespace,
		kubernetes.API(k.API)
	cfg.RequestTimeout = t.settings.OperationTimeout
	name, err := kubernetes.LeaseName(t.spec.System, t.spec.Name)
	if err != nil {
		d.Findings = []kubernetes.Finding{{Check: "configuration", Status: kubernetes.Failed, Detail: err.Error()}}
		return
	}
	cfg.Name = name
	found := kubernetes.Diagnose(ctx, cfg)
	d.Lease, d.Server, d.User, d.Findings, d.Healthy = t.implementation+":"+found.Lease, found.Server,
		found.User, found.Findings, found.OK()
	if n := len(found.RoundTrips); n > 0 {
		d.RoundTrip = &roundTrips{micro(found.RoundTrips[0]), micro(found.RoundTrips[n/2]),
			micro(found.RoundTrips[n-1])}
	}
	if c := found.ClockDifference; c != nil {
		d.Clock = c.Round(time.Second).String()
	}
	if found.Record != nil {
		d.State = newLeaseAnswer(d.Lease, lease.Snapshot{Record: *found.Record}, found.Exists)
	}
}

// diagnoseStore is for all other implementations: what their preflight says, and a read.
func (t *target) diagnoseStore(ctx context.Context, d *diagnosis) {
	report := func(check string, err error, detail string) bool {
		if err == nil {
			d.Findings = append(d.Findings, kubernetes.Finding{Check: check, Status: kubernetes.OK, Detail: detail})
			return true
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.Findings = append(d.Findings, kubernetes.Finding{Check: check, Status: kubernetes.Failed, Detail: line})
		}
		return false
	}
	if !report("configuration", t.open(ctx), "accepted") {
		return
	}
	defer t.close()
	d.Lease, d.Healthy = t.where, true
	bounded, cancel := context.WithTimeout(ctx, 3*t.settings.OperationTimeout) // several requests
	defer cancel()
	d.Healthy = report("dry run", lease.Preflight(bounded, t.store),
		"what the store needs works; nothing was stored")
	if r, ok := t.store.(interface {
		Risks(context.Context) ([]string, error)
	}); ok && d.Healthy {
		risks, err := r.Risks(bounded)
		if err != nil || len(risks) == 0 {
			d.Healthy = report("risks", err, "none: a crash or a failover loses no acknowledged write")
		}
		for _, risk := range risks {
			d.Findings = append(d.Findings, kubernetes.Finding{Check: "risks", Status: kubernetes.Warning,
				Detail: risk})
		}
	}
	if id, ok := t.store.(lease.Identified); ok && d.Healthy {
		if _, err := id.Identity(bounded); err != nil {
			d.Findings = append(d.Findings, kubernetes.Finding{
				Check: "which store", Status: kubernetes.Warning,
				Detail: "not known: a member with another store is not noticed, " +
					"and both sides of a partition may stay up: " + err.Error(),
			})
		}
	}
	start := time.Now()
	snap, err := t.read(ctx)
	took := time.Since(start)
	if !report("lease", err, "readable, in "+micro(took)) {
		d.Healthy = false
		return
	}
	d.State = newLeaseAnswer(d.Lease, snap, snap.Version != "")
}

func micro(d time.Duration) string { return d.Round(time.Microsecond).String() }

// text is a table of the findings, each fix below its finding, and the state of the lease.
func (d *diagnosis) text(p painter) string {
	var b strings.Builder
	width := 0
	for _, f := range d.Findings {
		width = max(width, len(f.Check))
	}
	for _, f := range d.Findings {
		mark := map[kubernetes.Status]string{
			kubernetes.OK: p.green("ok     "), kubernetes.Warning: p.yellow("warning"),
			kubernetes.Failed: p.red("FAILED "), kubernetes.Skipped: "-      ",
		}[f.Status]
		fmt.Fprintf(&b, "%s  %-*s  %s\n", mark, width, f.Check, f.Detail)
		if f.Fix != "" {
			fmt.Fprintf(&b, "%*s-> %s\n", width+len("warning")+4, "", f.Fix)
		}
	}
	if d.State != nil {
		b.WriteString("\n" + d.State.text(time.Now()))
	}
	return b.String()
}
