package agent

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// joins keeps the outcome of the attempts to join others.
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

// note records the outcome of a join. For the failure detector and for a process that waits for members,
// members that answer with another gossip key look like failed ones. A join without an answer says nothing
// about keys.
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

// joined reports whether other members were found, and what is missing.
func (j *joins) joined() (bool, string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.found || j.last == nil {
		return j.found, "joining"
	}
	return false, "joining: nobody answers: " + firstLine(j.last)
}

// keyProblem describes a problem with the gossip keys; empty if none is known.
func (j *joins) keyProblem() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.key
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}
