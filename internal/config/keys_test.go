package config

import (
	"maps"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each key has a text, and each text belongs to a key: people read them in the template, in their editor and
// in the docs.
func TestKeys_EachHasAText(t *testing.T) {
	left := maps.Clone(texts())
	for _, k := range Keys() {
		require.Regexp(t, `^\S.{9,}[.]$`, k.Text, "%s: keys.yaml says what each key means", k.Path)
		delete(left, k.Path)
	}
	require.Empty(t, left, "texts of keys that do not exist")
}

// The template validates as it is, and shows the defaults: with every comment of a default taken in it has
// the same effect.
func TestTemplate_ShowsTheDefaults(t *testing.T) {
	data, err := Template(map[string]string{"system": "payments", implementationKey: ImplementationKubernetes})
	require.NoError(t, err)
	template := string(data)
	written, err := Parse("template", data)
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?m)^( *)#([a-z-]+:( [^\s].*)?)$`).ReplaceAllString(template, "$1$2")
	require.NotEqual(t, template, shown)
	shown = regexp.MustCompile(`(?m)^ *(tags|join|context|api|`+absent+`):$`).ReplaceAllString(shown, "")
	all, err := Parse("template", []byte(shown))
	require.NoError(t, err, shown)
	require.Equal(t, string(written.Effective()), string(all.Effective()))

	_, err = Template(map[string]string{"system": "payments", "lease.file.pat": "x"})
	require.EqualError(t, err, "lease.file.pat: unknown key")
	_, err = Template(map[string]string{"system": ""})
	require.ErrorContains(t, err, "system: is not set")
}

// absent are keys that have no default to show.
const absent = `quorum-size|address|namespace|kubeconfig|lease-name|heartbeat-interval|path|file|node|bind|advertise|encrypt|keyring-file|` +
	`snapshot|rejoin|unique-node|tls-cert-file|tls-key-file|token-file|pid-file|` +
	`etcd|postgres|mongodb|endpoints|prefix|username|password-file|tls|ca|cert|key|url|url-file|table|uri|uri-file|database|collection`
