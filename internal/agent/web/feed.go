package web

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What feeds may cost.
const (
	maxFeeds  = 32
	pollEvery = 250 * time.Millisecond // how often the source is asked, for all feeds together
	aliveTime = 15 * time.Second       // between two signs of life
	sendTime  = 5 * time.Second        // for one event to be taken
	retryTime = 2 * time.Second        // what a client is told to wait before it comes back
)

// feed is what all clients of /events share: the newest state, encoded once. Whoever needs it renews it; nothing runs by itself.
type feed struct {
	source Source
	// boot tells this process from the one before it: ids of entries begin anew.
	boot string

	mu      sync.Mutex
	clients int
	at      time.Time
	now     *moment
}

// moment is one state. It does not change.
type moment struct {
	version uint64
	// state is the JSON of the state but for the time.
	state   []byte
	entries []Entry
}

func newFeed(s Source) *feed {
	return &feed{source: s, boot: strings.ToLower(rand.Text()[:8]), now: &moment{}}
}

// enter counts a client in; ok is false when there are too many.
func (f *feed) enter() (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients == maxFeeds {
		return false
	}
	f.clients++
	return true
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients--
}

// latest is the newest state; unless it is forced, one that is younger than pollEvery is new enough.
func (f *feed) latest(force bool) (*moment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := time.Since(f.at); f.now.version > 0 && age < pollEvery && !force {
		return f.now, nil
	}
	r := read(f.source)
	state, err := json.Marshal(struct {
		Boot   string         `json:"boot"`
		Status downing.Status `json:"status"`
		Health healthAnswer   `json:"health"`
		View   *view          `json:"view"`
	}{f.boot, r.Status, answerOf(r.health), viewOf(r)})
	if err != nil {
		return nil, err
	}
	next := &moment{version: f.now.version, state: state, entries: r.entries}
	if !bytes.Equal(state, f.now.state) {
		next.version++
	}
	f.at, f.now = time.Now(), next
	return next, nil
}

// healthAnswer is Health as JSON.
type healthAnswer struct {
	Live  checkAnswer `json:"live"`
	Ready checkAnswer `json:"ready"`
}

type checkAnswer struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

func answerOf(h Health) healthAnswer {
	return healthAnswer{checkAnswer{h.Live.OK, line(h.Live.Reason)}, checkAnswer{h.Ready.OK, line(h.Ready.Reason)}}
}

// entryAnswer is an Entry as JSON, with what the page shows of it.
type entryAnswer struct {
	ID       string       `json:"id"`
	At       time.Time    `json:"at"`
	Kind     string       `json:"kind"`
	Member   string       `json:"member"`
	Subject  string       `json:"subject,omitempty"`
	Incident string       `json:"incident,omitempty"`
	Text     string       `json:"text"`
	Verdict  *sbr.Verdict `json:"verdict,omitempty"`
	View     entryView    `json:"view"`
}

type entryView struct {
	At   string `json:"at"`
	Word string `json:"word"`
	Text string `json:"text"`
	Tone string `json:"tone"`
}

func (f *feed) entry(e *Entry) entryAnswer {
	a := entryAnswer{
		ID: f.boot + "-" + strconv.FormatUint(e.ID, 10), At: e.At, Kind: e.Kind, Member: e.Member, Subject: e.Subject, Incident: e.Incident, Text: e.Text, Verdict: e.Verdict,
		View: entryView{At: stamp(e.At), Word: kindWord(e.Kind), Text: line(e.Text)},
	}
	switch e.Kind {
	case downing.OccurredVerdict, string(sbr.TopicDecision), downing.OccurredGranted:
		a.View.Tone = "key"
	case downing.OccurredUnreachable, downing.OccurredDown, downing.OccurredUnknown, downing.OccurredRefused, downing.OccurredAgentSilent:
		a.View.Tone = "bad"
	}
	return a
}

// parseEventID reads the id that a client has seen last; anything that is not one of this process counts as nothing seen.
func (f *feed) parseEventID(id string) (seen uint64) {
	boot, n, ok := strings.Cut(id, "-")
	if !ok || boot != f.boot {
		return 0
	}
	seen, err := strconv.ParseUint(n, 10, 64)
	if err != nil {
		return 0
	}
	return seen
}
