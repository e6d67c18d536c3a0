package lab

import (
	"fmt"
	"os"
	"regexp"
)

// prefix begins the name of every network namespace that a lab makes.
const prefix = "sbrlab"

// bridgeName is the part of a namespace's name that a host has for its own: no host may be called so.
const bridgeName = "bridge"

// labName is what the namespaces of one lab of this process have in common.
func labName(id string) string { return fmt.Sprintf("%s-%d-%s", prefix, os.Getpid(), id) }

// hostName is what a host can be called.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,31}$`)

func validName(name string) error {
	if !hostName.MatchString(name) || name == bridgeName {
		return fmt.Errorf("lab: a host cannot be called %q: letters, digits, dots and dashes, at most 32, and not %q", name, bridgeName)
	}
	return nil
}
