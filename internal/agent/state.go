package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// state is the folder in which the agent remembers what must outlive its process.
type state struct {
	dir    string
	downed string // the file with the incarnations that went down, one a line
	seen   string // the file with the addresses at which members were, one a line
	known  []string
	log    *slog.Logger
	mu     sync.Mutex
}

// keepDowned is how many incarnations are remembered: only the newest can still be in an agent's tags.
const keepDowned = 32

// openState finds the folder and makes it. One that cannot be used costs a memory, no start.
func openState(system string, log *slog.Logger) (*state, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	s := &state{dir: dir, downed: filepath.Join(dir, fileName(system)+".downed"), seen: filepath.Join(dir, fileName(system)+".members"), log: log}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		log.Warn("sbr: the state directory cannot be used: an incarnation that goes down is not remembered; set STATE_DIRECTORY to a folder that can be written", "error", err)
		return s, nil
	}
	f, err := os.OpenFile(s.downed, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		log.Warn("sbr: the state directory cannot be written: an incarnation that goes down is not remembered; set STATE_DIRECTORY to a folder that can be written", "error", err)
		return s, nil
	}
	return s, f.Close()
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

// fileName makes a name fit for a file.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ':' || r == 0 {
			return '_'
		}
		return r
	}, name)
}

// leasePath is where the lease is kept when nobody says where.
func (s *state) leasePath(lease string) (string, error) {
	if _, err := os.Stat(s.dir); err != nil {
		return "", fmt.Errorf("no place for the lease: set lease-implementation: kubernetes, or lease.file.path, or STATE_DIRECTORY: %w", err)
	}
	return filepath.Join(s.dir, fileName(lease)+".lease"), nil
}

// wasDowned reports whether an incarnation went down on this host.
func (s *state) wasDowned(incarnation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.read(), incarnation)
}

func (s *state) read() []string { return s.lines(s.downed) }

func (s *state) lines(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("sbr: the state cannot be read", "error", err)
	}
	return strings.Fields(string(data))
}

// remember notes that an incarnation went down.
func (s *state) remember(incarnation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := append(s.read(), incarnation)
	if err := replace(s.downed, all[max(0, len(all)-keepDowned):]); err != nil {
		s.log.Warn("sbr: cannot remember that this incarnation went down", "error", err)
	}
}

// places are addresses at which members were.
func (s *state) places() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines(s.seen)
}

// rememberPlaces notes where members are now, in front of where others were. It writes only what is news.
func (s *state) rememberPlaces(addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known
	if known == nil {
		known = s.lines(s.seen)
	}
	all := slices.Clone(addresses)
	slices.Sort(all)
	all = slices.Compact(all)
	for _, place := range known {
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	all = all[:min(len(all), keepPlaces)] // before the comparison: those beyond it are never known
	news := slices.ContainsFunc(all, func(place string) bool { return !slices.Contains(known, place) })
	if s.known = all; !news {
		return
	}
	if err := replace(s.seen, all); err != nil {
		s.log.Debug("sbr: cannot remember where members are", "error", err)
	}
}

// replace writes a file as a whole.
func replace(path string, lines []string) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(strings.Join(lines, "\n")+"\n"), 0o640); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// kubernetesAround reports whether somebody has said which Kubernetes to use: the pod that this is, or a kubeconfig in the environment.
func kubernetesAround() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" || os.Getenv("KUBECONFIG") != ""
}
