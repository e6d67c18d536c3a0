package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// variants are what people will print, by the name of the golden file.
var variants = map[string]func(*manifest.Options){
	"native":                      func(*manifest.Options) {},
	"native-beforehand":           func(o *manifest.Options) { o.Create = false },
	"akka":                        func(o *manifest.Options) { o.API, o.CRD = kubernetes.Akka, true },
	"akka-create":                 func(o *manifest.Options) { o.API, o.CRD, o.PreMade = kubernetes.Akka, true, false },
	"pekko-installed-by-somebody": func(o *manifest.Options) { o.API, o.Create = kubernetes.Pekko, false },
}

func options(variant, namespace string) manifest.Options {
	o := manifest.DefaultOptions()
	o.System, o.Namespace, o.ServiceAccount = "payments", namespace, "member"
	variants[variant](&o)
	return o
}

func text(t *testing.T, o manifest.Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, manifest.Write(&b, o))
	return b.String()
}

func TestWrite_Golden(t *testing.T) {
	for name := range variants {
		path := filepath.Join("testdata", name+".yaml")
		got := text(t, options(name, "team-a"))
		require.Equal(t, got, text(t, options(name, "team-a")), "the same each time")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "%s (go test ./lease/kubernetes/manifest -update)", path)
	}
}

func TestWrite_EachDocumentSaysWhatItIsFor(t *testing.T) {
	for name := range variants {
		for document := range strings.SplitSeq(strings.TrimPrefix(text(t, options(name, "team-a")), "---\n"),
			"---\n") {
			require.True(t, strings.HasPrefix(document, "# "), "%s", document)
			require.Contains(t, document, "\napiVersion: ")
		}
	}
}

// A namespace may look like a number, and is a text in both forms all the same.
func TestWrite_NamesThatLookLikeNumbers(t *testing.T) {
	for name := range variants {
		o := options(name, "123")
		require.Contains(t, text(t, o), `namespace: "123"`)
		var b bytes.Buffer
		require.NoError(t, manifest.WriteJSON(&b, o))
		var list struct {
			APIVersion, Kind string
			Items            []struct {
				Kind     string
				Metadata struct{ Namespace string }
			}
		}
		require.NoError(t, json.Unmarshal(b.Bytes(), &list))
		require.Equal(t, "v1 List", list.APIVersion+" "+list.Kind)
		require.Len(t, list.Items, strings.Count(text(t, o), "---\n"), "as many items as documents")
		for _, item := range list.Items {
			require.Equal(t, item.Kind != "CustomResourceDefinition", item.Metadata.Namespace == "123", item.Kind)
		}
	}
}

func TestOptions_Validate(t *testing.T) {
	require.NoError(t, options("akka", "team-a").Validate())
	err := manifest.Options{API: "zookeeper", Name: "__"}.Validate()
	for _, want := range []string{`lease-name: `, `"" cannot be a namespace`, `"" cannot be a service account`,
		`"zookeeper" is no API`} {
		require.ErrorContains(t, err, want)
	}
	require.Len(t, strings.Split(err.Error(), "\n"), 4)
	require.ErrorContains(t, manifest.DefaultOptions().Validate(), "neither a system nor a lease-name")

	o := options("native", "team-a")
	o.CRD = true
	require.ErrorContains(t, o.Validate(), "a native lease needs no CustomResourceDefinition")
	var b bytes.Buffer
	require.Error(t, manifest.Write(&b, o))
	require.Error(t, manifest.WriteJSON(&b, o))
	require.Empty(t, b.String())
	o.CRD, o.API = false, ""
	require.NoError(t, o.Validate(), "the zero API is the native one")
}

// The lease is called what the members call it.
func TestWrite_NamesTheLeaseAsTheMembersDo(t *testing.T) {
	o := options("native", "team-a")
	require.Contains(t, text(t, o), "resourceNames: ["+kubernetes.Name("payments")+"]")
	o.Name = "My_Lease"
	require.Contains(t, text(t, o), "resourceNames: [my-lease]")
}

func TestWrite_ReportsTheWritersError(t *testing.T) {
	broken := errors.New("disk full")
	require.ErrorIs(t, manifest.Write(writer{broken}, options("native", "team-a")), broken)
	require.ErrorIs(t, manifest.WriteJSON(writer{broken}, options("native", "team-a")), broken)
}

type writer struct{ err error }

func (w writer) Write([]byte) (int, error) { return 0, w.err }
