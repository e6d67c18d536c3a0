package agent

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// unique is what tells the nodes of one name apart: a form that no label of a domain has, because package downing tells hosts by their names.
func unique() string { return fmt.Sprintf("u%010d", rand.N[uint64](1e10)) }
