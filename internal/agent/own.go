package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// own is a Serf node in this process.
type own struct {
	joins
	conf *serf.Config
	join []string
	stay bool   // on termination: end without a leave
	then string // what is waited for before there is a node

	prepared bool
	bound    *memberlist.NetTransport
	serf     *serf.Serf
	stop     context.CancelFunc
	joining  sync.WaitGroup
}

func newOwn(f *config.File, then string, log *slog.Logger) (*own, error) {
	conf, err := serfConfig(&f.Serf, log)
	if err != nil {
		return nil, err
	}
	return &own{
		joins: joins{log: log, found: len(f.Serf.Join) == 0}, conf: conf, join: f.Serf.Join,
		stay: !bool(f.Serf.LeaveOnTerminate), then: then,
	}, nil
}

// gossip are the memberlist settings of the profile.
func gossip(profile string) *memberlist.Config {
	switch profile {
	case "wan":
		return memberlist.DefaultWANConfig()
	case "local":
		return memberlist.DefaultLocalConfig()
	default:
		return memberlist.DefaultLANConfig()
	}
}

// defaultPort is Serf's.
const defaultPort = 7946

func serfConfig(s *config.Serf, log *slog.Logger) (*serf.Config, error) {
	conf := serf.DefaultConfig()
	conf.MemberlistConfig = gossip(s.Profile)
	m := conf.MemberlistConfig
	// How long Serf waits until its leave, a removal or new tags are sent. When all members leave, no
	// receiver is left. Among a thousand members one message needs six rounds of gossip.
	conf.BroadcastTimeout = 10 * m.GossipInterval
	// packets are small: on a LAN packing each of them costs more than it saves
	m.EnableCompression = s.Profile == "wan"
	conf.Logger = serfLogger(log)
	m.Logger = conf.Logger
	name, err := nodeName(s)
	if err != nil {
		return nil, err
	}
	conf.NodeName, m.Name = name, name
	conf.Tags = s.Tags
	conf.ProtocolVersion = serf.ProtocolVersionMax
	conf.SnapshotPath, conf.RejoinAfterLeave = s.Snapshot, bool(s.Rejoin)
	conf.EnableNameConflictResolution = !bool(s.UniqueNode)
	m.BindAddr, m.BindPort = "0.0.0.0", defaultPort
	if s.Bind != "" {
		if m.BindAddr, m.BindPort, err = hostPort(s.Bind, defaultPort); err != nil {
			return nil, fmt.Errorf("serf.bind: %w", err)
		}
		ip, err := net.ResolveIPAddr("ip", m.BindAddr)
		if err != nil {
			return nil, fmt.Errorf("serf.bind: %w", err)
		}
		m.BindAddr = ip.IP.String() // memberlist takes a name, or a zone, for all addresses
	}
	if s.Advertise != "" {
		if m.AdvertiseAddr, m.AdvertisePort, err = hostPort(s.Advertise, m.BindPort); err != nil {
			return nil, fmt.Errorf("serf.advertise: %w", err)
		}
		ip, err := net.ResolveIPAddr("ip", m.AdvertiseAddr)
		if err != nil {
			return nil, fmt.Errorf("serf.advertise: %w", err)
		}
		m.AdvertiseAddr = ip.String()
	}
	if s.Snapshot != "" { // Serf itself would give up for good
		f, err := os.OpenFile(s.Snapshot, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("serf.snapshot: %w", err)
		}
	}
	return conf, setKeys(s, conf)
}

// nodeName is the name in Serf. It may have only the characters that Serf takes.
func nodeName(s *config.Serf) (string, error) {
	name := s.Node
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return "", fmt.Errorf("serf.node: is empty, and the host has no name: %w", err)
		}
		name = host
	}
	if s.UniqueNode {
		name += "." + unique()
	}
	return name, nil
}

func hostPort(address string, port int) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, port, nil // validated: a host alone
	}
	port, err = strconv.Atoi(text)
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, err
}

// setKeys sets what encrypts the gossip.
func setKeys(s *config.Serf, conf *serf.Config) error {
	if s.Encrypt != "" {
		key, err := base64.StdEncoding.DecodeString(s.Encrypt)
		if err != nil {
			return fmt.Errorf("serf.encrypt: is not base64: %w", err)
		}
		conf.MemberlistConfig.SecretKey = key
	}
	if s.KeyringFile == "" {
		return nil
	}
	keys, err := readKeyring(s.KeyringFile)
	if err != nil {
		return fmt.Errorf("serf.keyring-file: %w", err)
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return fmt.Errorf("serf.keyring-file: %s: %w", s.KeyringFile, err)
	}
	conf.KeyringFile, conf.MemberlistConfig.Keyring = s.KeyringFile, ring
	return nil
}

// readKeyring reads Serf's own format: a JSON list of keys in base64, the first of which encrypts.
func readKeyring(path string) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, fmt.Errorf("%s: must be a JSON list of keys in base64: %w", path, err)
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s: holds no key", path)
	}
	keys := make([][]byte, len(texts))
	for i, t := range texts {
		if keys[i], err = base64.StdEncoding.DecodeString(t); err != nil {
			return nil, fmt.Errorf("%s: key %d is not base64", path, i+1) // the value is a secret
		}
	}
	return keys, nil
}

// prepare reads the lease, then takes the address. Not earlier: others would wait for answers of a node that
// has not started.
func (o *own) prepare(ctx context.Context, p *downing.Provider) error {
	if !o.prepared {
		err := p.Prepare(ctx, o.conf)
		passes := errors.Is(err, downing.ErrLease) || errors.As(err, new(syscall.Errno)) // a full disk
		if err != nil && ctx.Err() == nil && !passes {
			return Problem{err} // of the names and limits in the configuration
		}
		if err != nil {
			return err
		}
		o.prepared = true
	}
	return o.bind()
}

// bindTries is how often a free port is looked for: it must be free for UDP and for TCP.
const bindTries = 10

// bind takes the address on which the node gossips. Serf itself would give up for good.
func (o *own) bind() (err error) {
	m := o.conf.MemberlistConfig
	var t *memberlist.NetTransport
	for range bindTries {
		t, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{m.BindAddr},
			BindPort: m.BindPort, Logger: m.Logger})
		if err == nil || m.BindPort != 0 {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("serf.bind: %w: is another Serf running on this address?", err)
	}
	if m.BindPort == 0 {
		m.BindPort = t.GetAutoBindPort()
		m.AdvertisePort = m.BindPort
	}
	m.Transport, o.bound = t, t
	return nil
}

func (o *own) waits() string { return o.then }

func (o *own) start(ctx context.Context, p *downing.Provider) error {
	s, err := serf.Create(o.conf)
	if err != nil {
		return fmt.Errorf("serf: the node cannot be made: %w", err)
	}
	o.serf = s
	if err := p.Start(ctx, s); err != nil {
		return fmt.Errorf("serf: %w", err)
	}
	joining, stop := context.WithCancel(context.Background())
	o.stop = stop
	if len(o.join) > 0 {
		o.joining.Go(func() { o.keepJoining(joining) })
	}
	return nil
}

// Joining again.
const (
	joinFirst = 200 * time.Millisecond
	joinMost  = 5 * time.Second
	joinAgain = 30 * time.Second
	joinEnd   = 500 * time.Millisecond
)

// keepJoining joins until it has found others, and then seldom: two parts of a cluster that started apart
// find each other only so.
func (o *own) keepJoining(ctx context.Context) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = joinFirst, joinMost
	for ctx.Err() == nil && o.serf.State() == serf.SerfAlive {
		n, err := o.serf.Join(o.join, true)
		o.note(strings.Join(o.join, " or "), n > 0, err)
		pause := wait.NextBackOff()
		if n > 0 && len(o.serf.Members()) > 1 {
			pause = joinAgain
		} else if n == 0 {
			o.log.Warn("sbr: nobody to join answers, trying again", "join", o.join, "error", err, "in", pause)
		}
		select {
		case <-ctx.Done():
		case <-o.serf.ShutdownCh():
		case <-time.After(pause):
		}
	}
}

func (o *own) leave(ctx context.Context, p *downing.Provider) error {
	o.stop()
	if o.stay {
		err := p.Stop(ctx)
		_ = o.serf.Shutdown() // nothing to hand over
		return err
	}
	left := make(chan error, 1)
	go func() {
		defer func() { _ = recover() }() // Serf panics when a Shutdown after the time-out overtakes its Leave
		left <- o.serf.Leave()
	}()
	select {
	case err := <-left:
		if err == nil {
			err = p.Stop(ctx)
		}
		_ = o.serf.Shutdown()
		return err
	case <-ctx.Done():
		return fmt.Errorf("serf: %w", ctx.Err())
	}
}

func (o *own) close() {
	if o.stop != nil {
		o.stop()
	}
	switch {
	case o.serf != nil:
		_ = o.serf.Shutdown() // a second one does nothing
	case o.bound != nil:
		_ = o.bound.Shutdown()
	}
	// nothing interrupts a join that is under way: ten seconds for each address
	sleep.Within(time.After(joinEnd), o.joining.Wait)
}

// serfLogger hands the lines of Serf and memberlist on, with the level that stands in them: "[WARN] serf: …".
func serfLogger(to *slog.Logger) *log.Logger { return log.New(&serfLog{to}, "", 0) }

type serfLog struct{ to *slog.Logger }

var serfLevels = map[string]slog.Level{
	"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERR": slog.LevelError,
	"ERROR": slog.LevelError,
}

func (s *serfLog) Write(p []byte) (int, error) {
	line, level := strings.TrimSpace(string(p)), slog.LevelInfo
	if word, rest, found := strings.Cut(strings.TrimPrefix(line, "["), "] "); found {
		if is, known := serfLevels[word]; known {
			line, level = rest, is
		}
	}
	s.to.Log(context.Background(), level, line)
	return len(p), nil
}

// unique is what tells the nodes of one name apart: a form that no label of a domain has, because package
// downing tells hosts by their names.
func unique() string { return fmt.Sprintf("u%010d", rand.N[uint64](1e10)) }
