package agent

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
)

// refusal makes a Problem of what trying again does not mend.
func refusal(err error) error {
	if errors.Is(err, downing.ErrLease) || errors.Is(err, agentrpc.ErrAuth) {
		return Problem{err}
	}
	return err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// unique is what tells the nodes of one name apart: a form that no label of a domain has, because package downing tells hosts by their names.
func unique() string { return fmt.Sprintf("u%010d", rand.N[uint64](1e10)) }
