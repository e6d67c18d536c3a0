package downing

import "github.com/serf-sbr/serf-sbr/sbr"

// warner is a strategy that can tell when the cluster has outgrown its settings.
type warner interface {
	Warning(v *sbr.View) string
}

// warn logs what the strategy has to say against the present membership, once for each sentence.
func (e *engine) warn() {
	w, ok := e.strategy.(warner)
	if !ok {
		return
	}
	s := e.resolver.Snapshot()
	text := w.Warning(&sbr.View{Self: s.Self, Members: s.Members})
	if text != "" && text != e.lastWarning {
		e.log.Warn("sbr: "+text, "strategy", e.cfg.Strategy)
	}
	e.lastWarning = text
}
