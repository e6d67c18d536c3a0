package agent

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// joins is what the attempts to join others came to.
type joins struct {
	log *slog.Logger

	mu    sync.Mutex
	found bool // others, or it is not this agent's business to find them
	last  error
	key   string // what is wrong with the gossip keys
}

// keyErrors are what memberlist, here or in a stock agent, says of a member that answers a join and cannot be
// read.
var keyErrors = []string{
	"no installed keys could decrypt the message", "encryption is configured but remote state is not encrypted",
	"remote state is encrypted and encryption is not configured",
}

// note takes in what a join of a place came to. Members that answer and have another gossip key look, to the
// failure detector and to whoever waits for them, like members that are gone. No answer says nothing about
// keys.
func (j *joins) note(place string, found bool, err error) {
	differ := err != nil && slices.ContainsFunc(keyErrors, func(text string) bool {
		return strings.Contains(strings.ToLower(err.Error()), text)
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found, j.last = j.found || found, err
	switch {
	case found:
		j.key = ""
	case differ && j.key == "":
		j.key = "a member at " + place + " answers, and has another gossip key: give all members the same keys"
		j.log.Error("sbr: "+j.key, "error", firstLine(err))
	}
}

// joined reports whether the others were found, and what is missing.
func (j *joins) joined() (bool, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.found || j.last == nil {
		return j.found, "joining"
	}
	return false, "joining: nobody answers: " + firstLine(j.last)
}

// keyProblem is what whoever waits should know of the keys; empty if nothing is known.
func (j *joins) keyProblem() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.key
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}
