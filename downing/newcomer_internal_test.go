package downing

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// The incarnations of a host are known by its name, without what a start adds to it; other hosts stay others.
func TestHostOf(t *testing.T) {
	for id, want := range map[sbr.ID]string{
		"n1#a":                "n1",
		"n1#b":                "n1",
		"web.u0123456789#u":   "web",
		"Web-0.u9876543210#u": "web-0",
		"web-0.1b4e28ba-2fa1-11d2-883f-0016d3cca427#u": "web-0",
		"n1.example.com#u":        "n1.example.com",
		"db.dc1#u":                "db.dc1",
		"db.dc2#u":                "db.dc2",
		"n1.eu-west-1.internal#u": "n1.eu-west-1.internal",
		"?untagged":               "untagged",
	} {
		require.Equal(t, want, hostOf(id), id)
	}
}
