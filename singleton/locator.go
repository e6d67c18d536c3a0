package singleton

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/serf-sbr/serf-sbr/internal/locate"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// MaxEndpoint is how long an endpoint may be, in bytes.
const MaxEndpoint = locate.MaxEndpoint

// Location is where a singleton runs.
type Location struct {
	// ID is the member's incarnation, Name its name. Empty: no member is known to run it.
	ID   sbr.ID
	Name string
	// Endpoint is what Config.Endpoint says there.
	Endpoint string
	// Token is the token of the run.
	Token uint64
}

// Known reports whether the singleton is known to run somewhere.
func (l Location) Known() bool { return l.ID != "" }

// Locator knows where a singleton runs: each Manager sends all members its starts and stops, and answers a
// locator that has received none. A Locator works on any member, whether the member may run the singleton or
// not. All methods are safe for concurrent use.
//
// A location may be old: a message may be lost, or late. It never goes back to an older run.
type Locator struct {
	name string
	at   *locate.Locator // of one slot
}

// NewLocator returns the locator of the singleton called name. Close it after use; a member may have one
// locator for each singleton. Errors: those of downing.Provider's Serve.
func NewLocator(c Cluster, name string, log *slog.Logger) (*Locator, error) {
	return newLocator(c, name, "", log)
}

func newLocator(c Cluster, name, endpoint string, log *slog.Logger) (*Locator, error) {
	at := locate.New(locate.Options{
		Cluster: c, Topic: locatorTopic(name), What: "singleton " + name, Slots: 1, Endpoint: endpoint,
		Log: cmp.Or(log, slog.Default()),
	})
	if err := at.Start(); err != nil {
		return nil, err
	}
	return &Locator{name, at}, nil
}

// Close ends the locator and waits for it. Location stays as it is.
func (l *Locator) Close() { l.at.Close() }

// Location is where the singleton runs, as far as is known. It never blocks.
func (l *Locator) Location() Location { return Location(l.at.Slot(0).At()) }

// Changes sends where the singleton runs, now and after each change, until ctx ends; then the channel is
// closed. A slow reader gets the newest value only.
func (l *Locator) Changes(ctx context.Context) <-chan Location {
	return locate.Changes(ctx, l.at, func(at []locate.Location) Location { return Location(at[0]) })
}

// Wait returns where the singleton runs, once a run is known whose token is not tried, the token of the run
// that the caller tried in vain (zero: none). The error is ctx's, or says that the locator was closed.
func (l *Locator) Wait(ctx context.Context, tried uint64) (Location, error) {
	at, err := l.at.Slot(0).Wait(ctx, tried)
	if err != nil {
		return Location{}, fmt.Errorf("singleton %s: %w", l.name, err)
	}
	return Location(at), nil
}

// Refresh asks the members again, for a caller whose location no longer answers.
func (l *Locator) Refresh() { l.at.Slot(0).Refresh() }
