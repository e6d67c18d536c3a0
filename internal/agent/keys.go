package agent

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// keyErrors are what memberlist, here or in a stock agent, says of a member that answers a join and cannot be
// read.
var keyErrors = []string{
	"no installed keys could decrypt the message", "encryption is configured but remote state is not encrypted",
	"remote state is encrypted and encryption is not configured",
}

// keyCheck notices that members answer whose gossip key is another one: to the failure detector, and to
// whoever waits for them, they look like members that are gone.
type keyCheck struct {
	log *slog.Logger

	mu   sync.Mutex
	text string
}

// note takes in what a join of a place came to. No answer says nothing about keys.
func (k *keyCheck) note(place string, err error) {
	differ := err != nil && slices.ContainsFunc(keyErrors, func(text string) bool {
		return strings.Contains(strings.ToLower(err.Error()), text)
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case differ && k.text == "":
		k.text = "a member at " + place + " answers, and has another gossip key: give all members the same keys"
		k.log.Error("sbr: "+k.text, "error", firstLine(err))
	case err == nil:
		k.text = ""
	}
}

// problem is what whoever waits should know; empty if nothing is known.
func (k *keyCheck) problem() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text
}
