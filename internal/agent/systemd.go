package agent

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// readyEvery is how often a member that may not work yet is looked at.
const readyEvery = 250 * time.Millisecond

// announce tells systemd, if it started this process with Type=notify, when the member may work for the first
// time, and from then on that the process runs (WatchdogSec). A process that is frozen tells nothing, and is
// killed.
func (a *agent) announce(ctx context.Context) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.log.Warn("sbr: the watchdog of systemd is not served", "error", err)
	}
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for state := daemon.SdNotifyReady; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if state == daemon.SdNotifyReady && !(source{a}).Health().Ready.OK {
			continue
		}
		sent, err := daemon.SdNotify(false, state)
		if err != nil {
			a.log.Warn("sbr: systemd was not told", "state", state, "error", err)
			continue // ready is said again
		}
		if !sent || every == 0 {
			return
		}
		if state == daemon.SdNotifyReady {
			state = daemon.SdNotifyWatchdog
			tick.Reset(every / 3)
		}
	}
}
