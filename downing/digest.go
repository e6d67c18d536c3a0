package downing

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"runtime/debug"
	"strings"
)

// Digest is a short digest of the settings that decide: members with different digests would decide by different rules.
// It travels in the tag sbr_cfg.
func (c *Config) Digest() string {
	if c.ConfigDigest != "" {
		return c.ConfigDigest
	}
	h := sha256.New()
	r := c.Resolver
	fmt.Fprintf(h, "%s\n%s\n%+v\n", c.System, strings.ToLower(c.Strategy), c.Strategies)
	fmt.Fprintln(h, r.StableAfter, r.DownAllWhenUnstable, r.DownAllWhenIndirectlyConnected, r.ReleaseAfter, r.WhenLeaseUnknown, c.leaseName(), c.Lease.HeartbeatTimeout)
	return short(h.Sum(nil))
}

// shortHash makes eight characters of a text, for a tag.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return short(sum[:])
}

func short(sum []byte) string { return strings.ToLower(base32.StdEncoding.EncodeToString(sum)[:8]) }

// Version is the version of this module as it was built.
func Version() string {
	const module = "github.com/serf-sbr/serf-sbr"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == module {
		return info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return "(devel)"
}
