//go:build linux

package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

// Member is one host of the cluster with what runs on it.
type Member struct {
	Host *lab.Host
	// SBR is the supervisor of `sbr agent`, or of what Options.Shards puts in its place; Serf that of the
	// stock agent, nil for a node of its own.
	SBR, Serf *lab.Supervisor
	// Run is that of `sbr run`, which is always started again; nil without Options.Singleton.
	Run *lab.Supervisor
}

// askTimeout bounds one question to an agent; a paused one does not answer.
const askTimeout = 2 * time.Second

// get asks the agent's own HTTP server, from the host itself.
func (m *Member) get(ctx context.Context, path string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, pageURL+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := m.Host.Client().Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// ask gets what the agent says of something. An error is returned when it does not answer.
func (m *Member) ask(ctx context.Context, what string, into any) error {
	code, body, err := m.get(ctx, "/"+what)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d %s", code, body)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("cluster: %s of %s: %w", what, m.Host.Name(), err)
	}
	return nil
}

// Status is what the agent says of itself.
func (m *Member) Status(ctx context.Context) (s downing.Status, err error) {
	err = m.ask(ctx, "status", &s)
	return s, err
}

// Ready is nil when the agent says that this node may work, otherwise why not.
func (m *Member) Ready(ctx context.Context) error {
	code, body, err := m.get(ctx, "/healthz/ready")
	if err != nil {
		return fmt.Errorf("cluster: %s is not ready: %w", m.Host.Name(), err)
	}
	if code != http.StatusOK {
		return fmt.Errorf("cluster: %s is not ready: %s", m.Host.Name(), strings.TrimSpace(string(body)))
	}
	return nil
}

// each does something to both processes.
func (m *Member) each(do func(s *lab.Supervisor) error) error {
	var err error
	if m.Serf != nil {
		err = do(m.Serf)
	}
	return errors.Join(err, do(m.SBR))
}

// Pause freezes everything on the host (SIGSTOP), as a virtual machine that stands still. What has ended is
// left out.
func (m *Member) Pause(ctx context.Context) error {
	return m.each(func(s *lab.Supervisor) error { return ignoreEnded(s.Process().Pause(ctx)) })
}

// Resume ends Pause.
func (m *Member) Resume() error {
	return m.each(func(s *lab.Supervisor) error { return ignoreEnded(s.Process().Resume()) })
}

func ignoreEnded(err error) error {
	if errors.Is(err, process.ErrEnded) {
		return nil
	}
	return err
}

// Kill ends everything on the host at once, as a power failure; what is supervised starts again.
func (m *Member) Kill() {
	_ = m.each(func(s *lab.Supervisor) error {
		s.Process().Kill()
		return nil
	})
}

// SetRestart says whether what ends on the host is started again.
func (m *Member) SetRestart(on bool) {
	_ = m.each(func(s *lab.Supervisor) error {
		s.SetRestart(on)
		return nil
	})
}

// bootTimeout bounds how long a restarted process takes to be there again.
const bootTimeout = 30 * time.Second

// Restart kills everything on the host, if it runs, and starts it again, once.
func (m *Member) Restart(ctx context.Context) error {
	m.SetRestart(false)
	m.Kill()
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	err := m.each(func(s *lab.Supervisor) error {
		before := s.Process()
		s.SetRestart(true)
		return await(ctx, func() error {
			if s.Process() == before {
				return fmt.Errorf("cluster: %s on %s is not started again", before.Name(), m.Host.Name())
			}
			return s.Err()
		})
	})
	m.SetRestart(false)
	return err
}

// leaveTimeout bounds a leave in peace.
const leaveTimeout = 30 * time.Second

// Leave makes the member leave the cluster in good order, and ends what runs on the host.
func (m *Member) Leave(ctx context.Context) error { return m.leave(ctx, syscall.SIGTERM) }

// leave sends sig to `sbr agent`, or what is in its place, and waits for the ends.
func (m *Member) leave(ctx context.Context, sig os.Signal) error {
	m.SetRestart(false)
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	leave := func(s *lab.Supervisor, sig os.Signal) error {
		if err := ignoreEnded(s.Process().Signal(sig)); err != nil {
			return err
		}
		_, err := s.Process().Wait(ctx)
		return err
	}
	err := leave(m.SBR, sig)
	if m.Serf != nil {
		err = errors.Join(err, leave(m.Serf, os.Interrupt)) // that is how a stock agent is made to leave
	}
	return err
}

// Running reports whether `sbr agent` runs, paused or not.
func (m *Member) Running() bool { return m.SBR.Process().Alive() }

// Hook is one run of a hook.
type Hook struct {
	// Event is suspend, resume or down; At is when the command ran.
	Event       string
	At          time.Time
	Incarnation string
	Token       uint64
	Reason      string
}

// Hooks are the runs so far, in order.
func (m *Member) Hooks() ([]Hook, error) {
	file, err := os.Open(m.Host.File("hooks.txt"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	defer func() { _ = file.Close() }()
	var all []Hook
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		h, err := parseHook(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("cluster: %s: %w", file.Name(), err)
		}
		all = append(all, h)
	}
	return all, lines.Err()
}

// parseHook reads a line that note has written.
func parseHook(line string) (Hook, error) {
	fields := strings.SplitN(line, "\t", 5)
	if len(fields) != 5 {
		return Hook{}, fmt.Errorf("%q has %d fields", line, len(fields))
	}
	seconds, nanos, _ := strings.Cut(fields[1], ".")
	whole, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Hook{}, fmt.Errorf("%q: time: %w", line, err)
	}
	fraction, err := strconv.ParseInt(nanos, 10, 64)
	if err != nil {
		return Hook{}, fmt.Errorf("%q: time: %w", line, err)
	}
	token, err := strconv.ParseUint(fields[3], 10, 64)
	if err != nil {
		return Hook{}, fmt.Errorf("%q: token: %w", line, err)
	}
	return Hook{Event: fields[0], At: time.Unix(whole, fraction), Incarnation: fields[2], Token: token,
		Reason: fields[4]}, nil
}
