package config

import (
	"encoding/base64"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

func (c *checker) serf(s *Serf) {
	c.oneOf("serf.profile", s.Profile, timing.Profiles())
	c.address("serf.rpc", s.RPC)
	c.address("serf.bind", s.Bind)
	for i, a := range s.Join {
		if a == "" {
			c.Add("serf.join["+strconv.Itoa(i)+"]", "is empty: it must be host:port")
		}
		c.address("serf.join["+strconv.Itoa(i)+"]", a)
	}
	if s.RPC != "" && s.OwnNode() {
		c.Add("serf.rpc", "is set together with node, bind, encrypt or tags: the agent runs either beside a stock agent (rpc) or as a node of its own")
	}
	c.positive("serf.rpc-timeout", s.RPCTimeout)
	if s.Probe == "" && !s.OwnNode() {
		c.Add("serf.probe", "is empty: it must be the UDP address at which this agent answers the others' probes")
	}
	c.address("serf.probe", s.Probe)
	c.host("serf.advertise", s.Advertise)
	if s.Encrypt != "" && s.KeyringFile != "" {
		c.Add("serf.keyring-file", "is set together with encrypt: the key belongs into the file then")
	}
	if s.Rejoin && s.Snapshot == "" {
		c.Add("serf.rejoin", "is on without snapshot: there is nothing to rejoin from")
	}
	if key, err := base64.StdEncoding.DecodeString(s.Encrypt); err != nil || !slices.Contains([]int{0, 16, 24, 32}, len(key)) {
		c.Add("serf.encrypt", "is not a key: it must be 16, 24 or 32 bytes in base64") // the value is a secret: not shown
	}
}

// host checks host or host:port; empty is fine.
func (c *checker) host(path, address string) {
	if _, _, err := net.SplitHostPort(address); err == nil {
		c.address(path, address)
	} else if address != "" && net.ParseIP(address) == nil && strings.ContainsAny(address, ": \t") {
		c.Add(path, "is %q: it must be host or host:port", address)
	}
}

func (c *checker) http(h *HTTP) {
	c.address("http.listen", h.Listen)
	if (h.TLSCertFile == "") != (h.TLSKeyFile == "") {
		c.Add("http.tls-cert-file", "and tls-key-file belong together: set both, or none")
	}
}

func (c *checker) hooks(h *Hooks) {
	c.hook("hooks.on-suspend", h.OnSuspend)
	c.hook("hooks.on-resume", h.OnResume)
	c.hook("hooks.on-down", h.OnDown)
	c.positive("hooks.timeout", h.Timeout)
	c.positive("hooks.grace", h.Grace)
	if h.Timeout >= h.Grace && h.Grace > 0 {
		c.Add("hooks.grace", "is %v: it must be more than hooks.timeout (%v), or a slow on-down is cut short by the end of the process", h.Grace, h.Timeout)
	}
	if h.Signal == "" {
		c.Add("hooks.signal", "is empty: it must be the name of a signal, SIGTERM by default")
	}
}

func (c *checker) hook(path string, command []string) {
	if len(command) > 0 && strings.TrimSpace(command[0]) == "" {
		c.Add(path+"[0]", "is empty: it must be the command to run")
	}
}
