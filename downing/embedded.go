package downing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Prepare implements Engine.
func (e *engine) Prepare(ctx context.Context, conf *serf.Config) (err error) {
	leave, err := e.enter(ctx, stageNew, stagePrepared)
	if err != nil {
		return err
	}
	defer func() { leave(err) }()
	ctx, cancel := e.unlessStopped(ctx)
	defer cancel()
	if err := checkSerf(conf); err != nil {
		return err
	}
	e.self = newIncarnation(conf.NodeName)
	e.keepOut = newKeepOut(conf.Merge, e.self.ID, e.onRefused)
	e.gossip = conf.MemberlistConfig
	if sbr.NeedsLease(e.strategy) {
		if err := e.openLease(ctx); err != nil {
			return err
		}
	}
	advise(conf, e.log) // once, however often Prepare was tried
	if err := e.announce(nil); err != nil {
		return err
	}
	conf.Tags = withTags(conf.Tags, e.tags)
	conf.Merge = e.keepOut
	e.firstEventIn = conf.CoalescePeriod + conf.QuiescentPeriod + 5*time.Second
	e.tap = newTap(conf.EventCh, e.onSerfEvent)
	conf.EventCh = e.tap.in
	roomForQueries(conf)
	e.setFirstStatus()
	return nil
}

// checkSerf refuses configurations under which the resolver cannot work.
func checkSerf(conf *serf.Config) error {
	switch name := conf.NodeName; {
	case name == "":
		return errors.New("downing: serf.Config.NodeName is empty: set it before Prepare")
	case len(name) > serf.MaxNodeNameLength, !utf8.ValidString(name), strings.HasPrefix(name, untaggedPrefix):
		return fmt.Errorf("downing: serf.Config.NodeName is %q: it must be at most %d bytes of UTF-8 and not begin with %q", name, serf.MaxNodeNameLength, untaggedPrefix)
	case conf.ProtocolVersion < 4:
		return fmt.Errorf("downing: serf.Config.ProtocolVersion is %d: queries need at least 4", conf.ProtocolVersion)
	}
	return nil
}

// advise speaks of configurations that bite later.
func advise(conf *serf.Config, log *slog.Logger) {
	if conf.CoalescePeriod > 0 {
		log.Info("sbr: event coalescing is on; the resolver reads the member list and is not disturbed by it")
	}
	if conf.EnableNameConflictResolution {
		log.Info("sbr: name conflict resolution is on: a node that comes back under its old name at a new address within the failure window shuts itself down; prefer a name per incarnation")
	}
}

// queryOverhead is more than what Serf's queries and relayed answers hold beside the payload and names.
const queryOverhead = 200

// roomForQueries raises Serf's limits where they leave no room for a message and this node's name.
func roomForQueries(conf *serf.Config) {
	conf.QuerySizeLimit = max(conf.QuerySizeLimit, gossip.Limit+queryOverhead+len(conf.NodeName))
	conf.QueryResponseSizeLimit = max(conf.QueryResponseSizeLimit, gossip.Limit+queryOverhead+len(conf.NodeName)+serf.MaxNodeNameLength)
}

// Start implements Engine.
func (e *engine) Start(ctx context.Context, s *serf.Serf) (err error) {
	leave, err := e.enter(ctx, stagePrepared, stageStarted)
	if err != nil {
		return err
	}
	defer func() { leave(err) }()
	ctx, cancel := e.unlessStopped(ctx)
	defer cancel()
	if err := e.attach(ctx, s); err != nil {
		return err
	}
	return e.run()
}

// attach finds out whether s is the node that was prepared, and whether everything that Prepare put into its configuration works:
// a node whose tags, events or merges pass this engine by is not protected.
func (e *engine) attach(ctx context.Context, s *serf.Serf) error {
	if s == nil || !slices.ContainsFunc(s.Members(), func(m serf.Member) bool { return idOf(&m) == e.self.ID }) {
		return fmt.Errorf("%w: no member of this node has the tags of the incarnation %s", ErrNotPrepared, e.self.ID)
	}
	e.node = newNode(s)
	if !e.keepOut.created.Load() {
		return fmt.Errorf("%w, and serf.Config.Merge must not be replaced after it", ErrNotPrepared)
	}
	late := time.NewTimer(e.firstEventIn)
	defer late.Stop()
	select {
	case <-e.tap.first: // a node's own join is its first event
		return ctx.Err()
	case <-s.ShutdownCh():
		return nil // the loop sees to that
	case <-late.C:
		return fmt.Errorf("%w, and serf.Config.EventCh must not be replaced after it", ErrNotPrepared)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeTap ends the tap once Serf is shut down: a living Serf would freeze on a channel that nobody reads.
func (e *engine) closeTap() {
	switch {
	case e.tap == nil:
	case e.node == nil && e.keepOut.created.Load():
		// Serf was created but never given to Start, so nobody can tell whether it lives: better one goroutine too many.
	case e.node == nil || isDone(e.node):
		e.tap.close()
	default:
		go func() {
			<-e.node.done()
			e.tap.close()
		}()
	}
}
