package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// place tells the agents of one system apart that share a folder on one machine. It is the same at each start.
func place(s *config.Serf) string {
	if !s.OwnNode() {
		return s.RPCAddress()
	}
	host, _ := os.Hostname() // without one the start fails elsewhere
	return cmp.Or(s.Node, host)
}

func stateDir() (string, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" { // systemd's; a list where there are several
		first, _, _ := strings.Cut(dir, ":")
		return first, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/sbr", nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the state: set STATE_DIRECTORY: %w", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "sbr"), nil
}
