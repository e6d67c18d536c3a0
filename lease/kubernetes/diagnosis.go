package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Status is how a Finding came out.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but an operator should know
	Failed  Status = "failed"  // the lease does not work
	Skipped Status = "skipped" // could not be looked at, because an earlier check failed
)

// Finding is one thing that Diagnose has looked at.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	// Fix says what to do about it. Empty where nothing needs to be done.
	Fix string `json:"fix,omitempty"`
}

// Diagnosis is what Diagnose has found.
type Diagnosis struct {
	// Lease is "namespace/name", Server the address, User this program's user at the server. Empty: not
	// known.
	Lease, Server, User string
	// Findings are in the order in which one depends on another.
	Findings []Finding
	// Record is the lease as it stands; nil if it could not be read. Exists is false if there is none yet.
	Record *lease.Record
	Exists bool
	// RoundTrips are the times of successful reads of the lease, shortest first.
	RoundTrips []time.Duration
	// ClockDifference is how far the server's clock is ahead of this machine's, to about a second. Nil: not
	// known.
	ClockDifference *time.Duration
}

// OK reports whether nothing has failed.
func (d *Diagnosis) OK() bool {
	return !slices.ContainsFunc(d.Findings, func(f Finding) bool {
		return f.Status == Failed || f.Status == Skipped
	})
}

// The checks, in order.
const (
	checkConfiguration = "configuration"
	checkReachable     = "api server"
	checkCredentials   = "credentials"
	checkResource      = "resource"
	checkRights        = "right to "
	checkEvents        = "events"
	checkIdentity      = "which store"
	checkLease         = "lease"
	checkPreflight     = "dry run"
	checkRoundTrip     = "round trip"
	checkClock         = "clock"
)

const (
	probes         = 7               // requests whose times are measured
	tolerableClock = 5 * time.Second // what a Date header of whole seconds can tell for sure, and then some
)

// Diagnose finds out what works and what does not with cfg: it reads, asks for rights, and writes in a dry
// run. It changes nothing and holds nothing. Each request is bounded by cfg.RequestTimeout. It always returns
// a Diagnosis; what is wrong is in its Findings.
func Diagnose(ctx context.Context, cfg Config) *Diagnosis {
	d := &doctor{cfg: cfg, out: &Diagnosis{}}
	steps := []struct {
		check string
		run   func(context.Context) bool
	}{
		{checkConfiguration, d.configuration}, {checkReachable, d.reachable}, {checkCredentials, d.credentials}, {checkResource, d.resource},
		{checkRights + "use the lease", d.rights}, {checkLease, d.lease}, {checkPreflight, d.preflight}, {checkRoundTrip, d.roundTrip},
	}
	for i, step := range steps {
		if step.run(ctx) {
			continue
		}
		for _, later := range steps[i+1:] {
			d.add(later.check, Skipped, "", "not looked at, because of the failure above")
		}
		break
	}
	d.clock()
	if d.store != nil {
		_ = d.store.Close() // idle connections only
	}
	return d.out
}

// doctor is one Diagnose.
type doctor struct {
	cfg   Config
	out   *Diagnosis
	store *Store
	base  string
}

func (d *doctor) add(check string, status Status, fix, format string, args ...any) {
	d.out.Findings = append(d.out.Findings,
		Finding{Check: check, Status: status, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

func (d *doctor) configuration(context.Context) bool {
	err, fix := d.cfg.Validate(), ""
	if err == nil {
		err, fix = d.open(),
			"give this host a kubeconfig for the service account of the members (sbr manifests prints its rights)"
	}
	if err != nil {
		d.add(checkConfiguration, Failed, fix, "%s", oneLine(err))
		return false
	}
	d.out.Lease, d.out.Server = d.store.String(), d.base
	d.add(checkConfiguration, OK, "", "%s, lease %s (%s)", d.base, d.store, d.cfg.api())
	return true
}

func (d *doctor) open() error {
	restConfig, namespace, err := d.cfg.load()
	if err != nil {
		return err
	}
	d.cfg.Namespace = cmp.Or(namespace, defaultNamespace)
	if d.store, err = NewForConfig(restConfig, d.cfg); err != nil {
		return err
	}
	d.base = strings.TrimSuffix(d.store.client.rest.Get().AbsPath("/").URL().String(), "/")
	return nil
}

// lease reads the lease and says how it stands.
func (d *doctor) lease(ctx context.Context) bool {
	s, err := d.store.Read(ctx)
	if err != nil {
		d.add(checkLease, Failed, "", "%s", oneLine(err))
		return false
	}
	r := s.Record
	d.out.Record, d.out.Exists = &r, s.Version != ""
	mayCreate := d.settleCreation()
	switch {
	case s.Version == "" && !mayCreate:
		d.add(checkLease, Failed, "create it beforehand (sbr manifests), or grant the rights above",
			"does not exist, and may not be created")
	case s.Version == "":
		d.add(checkLease, OK, "", "does not exist yet: the first partition creates it")
	case r.Holder == "":
		d.add(checkLease, OK, "", "free, token %d%s", r.Token, lastVerdict(&r))
	default:
		d.add(checkLease, OK, "",
			"held by %q since %s, last heartbeat at %s (both by the holder's clock), token %d%s",
			r.Holder, r.Acquired.UTC().Format(time.RFC3339), r.Renewed.UTC().Format(time.RFC3339), r.Token,
			lastVerdict(&r))
	}
	return true
}

// settleCreation reports whether all rights that only the creation needs are there. Where the lease exists
// their lack is no warning.
func (d *doctor) settleCreation() bool {
	all := true
	for i, f := range d.out.Findings {
		if !strings.HasPrefix(f.Check, checkRights) || f.Status != Warning || f.Fix == "" {
			continue
		}
		if all = false; d.out.Exists {
			d.out.Findings[i] = Finding{Check: f.Check, Status: OK, Detail: "denied, and not needed: the lease exists"}
		}
	}
	return all
}

func lastVerdict(r *lease.Record) string {
	v := r.Verdict
	if v == nil {
		return ", no verdict yet"
	}
	return fmt.Sprintf(", last verdict under token %d by %s: %d survived, %d went down", v.Token, v.DecidedBy,
		len(v.Survivors), len(v.Down))
}

func (d *doctor) preflight(ctx context.Context) bool {
	if err := d.store.Preflight(ctx); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add(checkPreflight, Failed, "", "%s", line)
		}
		return true
	}
	d.add(checkPreflight, OK, "", "read, write (not stored) and watch work")
	return true
}

func (d *doctor) roundTrip(ctx context.Context) bool {
	for range probes {
		start := time.Now()
		if _, err := d.store.Read(ctx); err != nil {
			d.add(checkRoundTrip, Failed, "", "%s", oneLine(err))
			return true
		}
		d.out.RoundTrips = append(d.out.RoundTrips, time.Since(start))
	}
	slices.Sort(d.out.RoundTrips)
	median, longest := d.out.RoundTrips[probes/2], d.out.RoundTrips[probes-1]
	status, fix := OK, ""
	if longest > d.cfg.RequestTimeout/2 {
		status, fix = Warning, "raise lease-operation-timeout, or find out why the server is slow"
	}
	d.add(checkRoundTrip, status, fix, "median %s, longest %s of %d reads; a request may take %s",
		median.Round(100*time.Microsecond), longest.Round(100*time.Microsecond), probes, d.cfg.RequestTimeout)
	return true
}

func (d *doctor) clock() {
	if d.out.ClockDifference == nil {
		d.add(checkClock, Skipped, "", "not looked at: the server has not told the time")
		return
	}
	diff := *d.out.ClockDifference
	if diff.Abs() <= tolerableClock {
		d.add(checkClock, OK, "", "the server's clock agrees with this machine's (to about a second)")
		return
	}
	ahead := "ahead of"
	if diff < 0 {
		ahead = "behind"
	}
	why, fix := "nothing is decided by it, but times in the record look odd, and certificates and tokens may seem invalid", "set the clocks (NTP)"
	if d.cfg.api().Custom() {
		why = "programs of the other kind judge by wall clocks whether a holder is alive: they may take over too early"
	}
	d.add(checkClock, Warning, fix, "the server's clock is %s %s this machine's: %s",
		diff.Abs().Round(time.Second), ahead, why)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

var errNoAnswer = errors.New("no answer")
