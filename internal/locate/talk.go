package locate

import (
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	// answerTimeout is how long the answer to a request may take.
	answerTimeout = 2 * time.Second
	// askFirst and askAtMost bound the pause between two requests while a location is not known: each request
	// costs the whole cluster a message. askAtLeast bounds it where a caller waits.
	askFirst   = time.Second
	askAtMost  = 30 * time.Second
	askAtLeast = 250 * time.Millisecond
	// gather is the least pause between two messages of news: changes meanwhile go into one message.
	gather = 50 * time.Millisecond
)

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake
	}
}

// spread sends all members the changes of this member's runs.
func (l *Locator) spread() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-l.news:
		case <-l.ctx.Done():
			l.tellNews()
			return
		}
		l.tellNews()
		pause.Reset(gather)
		select {
		case <-pause.C:
		case <-l.ctx.Done():
		}
	}
}

// tellNews sends the unsent changes. It keeps those that cannot be sent now.
func (l *Locator) tellNews() {
	l.mu.Lock()
	untold := l.untold
	l.untold = make(map[int]change)
	l.mu.Unlock()
	runs, ended := news{kind: newsRuns, endpoint: l.o.Endpoint}, news{kind: newsEnded}
	for s, c := range untold {
		n := &ended
		if c.runs {
			n = &runs
		}
		n.entries = append(n.entries, entry{s, c.token})
	}
	for _, n := range []news{ended, runs} {
		slices.SortFunc(n.entries, entry.compare)
		for len(n.entries) > 0 {
			part := n
			part.entries = n.entries[:n.fit()]
			n.entries = n.entries[len(part.entries):]
			if err := l.tell("", part); errors.Is(err, downing.ErrTalkBusy) {
				l.tellLater(part, untold)
			}
		}
	}
}

// tellLater keeps changes that could not be sent, unless there are newer ones.
func (l *Locator) tellLater(n news, untold map[int]change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range n.entries {
		if _, newer := l.untold[e.slot]; !newer {
			l.untold[e.slot] = untold[e.slot]
		}
	}
	wake(l.news)
}

// tell sends one message, to all members if to is empty, and handles the answers. Only goroutines that Close
// waits for call it.
func (l *Locator) tell(to sbr.ID, n news) error {
	answers, err := l.o.Cluster.Ask(l.o.Topic, to, n.encode(), answerTimeout)
	if err != nil {
		l.o.Log.Debug("sbr: a locator could not ask", "what", l.o.What, "error", err)
		return err
	}
	if n.kind == newsWhere {
		l.work.Go(func() { l.listen(answers) })
	}
	return nil
}

func (l *Locator) listen(answers <-chan downing.Answer) {
	for {
		select {
		case a, open := <-answers:
			if !open {
				return
			}
			n, err := decodeNews(a.Payload)
			if err != nil || a.Unserved {
				continue
			}
			l.heard(a.From, n)
			if n.kind == newsRuns && n.next > 0 {
				l.ask(a.From, n.next)
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// seek asks all members while a location is unknown or doubted: soon after the start, and where a caller
// waits; otherwise seldom, because news may be lost.
func (l *Locator) seek() {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = askFirst, askAtMost // at random: not all members ask at once
	timer, armed := time.NewTimer(0), true
	defer timer.Stop()
	var last time.Time
	for {
		missing, changed := l.missing()
		switch {
		case len(missing) > 0 && !armed:
			timer.Reset(pause.NextBackOff())
		case len(missing) == 0:
			timer.Stop()
		}
		armed = len(missing) > 0
		select {
		case <-changed:
			continue
		case <-l.anew:
			pause.Reset()
			if left := askAtLeast - time.Since(last); left > 0 {
				timer.Reset(left)
				armed = true
				continue
			}
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
		last = time.Now()
		timer.Reset(pause.NextBackOff())
		armed = true
		l.ask("", 0)
	}
}

// missing are the slots whose location is not known, or doubted.
func (l *Locator) missing() (slots []int, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, changed := l.at.Get()
	for s := range at {
		if !at[s].Known() || l.doubted[s] {
			slots = append(slots, s)
		}
	}
	return slots, changed
}

// ask asks for the missing slots, from one slot on.
func (l *Locator) ask(to sbr.ID, from int) {
	missing, _ := l.missing()
	n := news{kind: newsWhere, next: from}
	for _, s := range missing {
		if s >= from {
			n.entries = append(n.entries, entry{slot: s})
		}
	}
	switch {
	case len(n.entries) == 0:
		return
	case n.fit() < len(n.entries):
		n.entries = nil // all
	}
	_ = l.tell(to, n) // it is asked again
}

// asked handles another member's news or request.
func (l *Locator) asked(q downing.Question) {
	n, err := decodeNews(q.Payload)
	if err != nil {
		l.o.Log.Debug("sbr: a location was not understood",
			"what", l.o.What, "from", downing.NameOf(q.From), "error", err)
		return
	}
	if n.kind != newsWhere {
		l.heard(q.From, n)
		return
	}
	if a := l.ownRuns(&n); len(a.entries) > 0 {
		if err := q.Answer(a.encode()); err != nil {
			l.o.Log.Debug("sbr: a locator could not answer", "what", l.o.What, "error", err)
		}
	}
}

// ownRuns lists the requested slots that run on this member, as many as one message carries.
func (l *Locator) ownRuns(q *news) news {
	a := news{kind: newsRuns, endpoint: l.o.Endpoint}
	list, _ := l.at.Get()
	self := l.o.Cluster.Peers().Self
	for s := min(q.next, len(list)); s < len(list); s++ {
		if list[s].Known() && list[s].ID == self && q.asks(s) {
			a.entries = append(a.entries, entry{s, list[s].Token})
		}
	}
	if n := a.fit(); n < len(a.entries) {
		a.next = a.entries[n].slot
		a.entries = a.entries[:n]
	}
	return a
}
