package kubetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// access is what one kubeconfig file says. The file is JSON, which is YAML too and needs no library.
type access struct {
	server    string
	authority []byte
	namespace string
	token     string
	tokenFile string // where the file says to read the token; empty: it stands in the file
}

type kubeconfigFile struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server    string `json:"server"`
		Authority []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster   string `json:"cluster"`
		User      string `json:"user"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"context"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Token     string `json:"token,omitempty"`
		TokenFile string `json:"tokenFile,omitempty"`
	} `json:"user"`
}

// write puts a new file into dir and returns its path.
func (a access) write(dir string) (string, error) {
	const name = "kubetest"
	var cluster namedCluster
	cluster.Name, cluster.Cluster.Server, cluster.Cluster.Authority = name, a.server, a.authority
	var context namedContext
	context.Name, context.Context.Cluster, context.Context.User, context.Context.Namespace = name, name, name, a.namespace
	var user namedUser
	user.Name, user.User.Token, user.User.TokenFile = name, a.token, a.tokenFile
	if a.tokenFile != "" {
		user.User.Token = ""
	}
	raw, err := json.MarshalIndent(kubeconfigFile{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []namedCluster{cluster}, Contexts: []namedContext{context}, Users: []namedUser{user},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("kubetest: kubeconfig: %w", err)
	}
	return writeNew(dir, "kubeconfig-*", raw)
}

// readAccess reads a file that write made.
func readAccess(path string) (access, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return access{}, fmt.Errorf("kubetest: kubeconfig: %w", err)
	}
	var file kubeconfigFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return access{}, fmt.Errorf("kubetest: kubeconfig %s: %w; give one that this package made", path, err)
	}
	if len(file.Clusters) != 1 || len(file.Contexts) != 1 || len(file.Users) != 1 {
		return access{}, fmt.Errorf("kubetest: kubeconfig %s: want one cluster, context and user; give one that this package made", path)
	}
	return access{
		server:    file.Clusters[0].Cluster.Server,
		authority: file.Clusters[0].Cluster.Authority,
		namespace: file.Contexts[0].Context.Namespace,
		token:     file.Users[0].User.Token,
		tokenFile: file.Users[0].User.TokenFile,
	}, nil
}

func writeNew(dir, pattern string, content []byte) (string, error) {
	file, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return "", fmt.Errorf("kubetest: %w", err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("kubetest: %s: %w", file.Name(), err)
	}
	return file.Name(), nil
}
