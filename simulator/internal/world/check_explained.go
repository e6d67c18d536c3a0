package world

import "github.com/serf-sbr/serf-sbr/sbr"

// explained checks that every decision comes with a sentence that says why.
type explained struct{ unchecked }

func (*explained) stepped(w *World, p *process, effects []sbr.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case sbr.Explain:
			if e.Text == "" {
				w.violate("explained", "%s explains %s without words", p.id, e.What)
			}
			if e.What == sbr.TopicDecision {
				p.asked = true
				if e.Decision == nil || e.Decision.Reason == "" {
					w.violate("explained", "%s decides without a reason: %s", p.id, e.Text)
				}
			}
		case sbr.AcquireLease:
			if !p.asked || e.Verdict.Reason == "" {
				w.violate("explained", "%s asks for the lease without an explained decision", p.id)
			}
		case sbr.TellOrder:
			if e.Order.Reason == "" {
				w.violate("explained", "%s gives an order without a reason", p.id)
			}
		case sbr.DownSelf:
			if e.Reason == "" {
				w.violate("explained", "%s goes down without a reason", p.id)
			}
		}
	}
}
