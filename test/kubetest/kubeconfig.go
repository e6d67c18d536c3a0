package kubetest

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// access is what one kubeconfig file says.
type access struct {
	server    string
	authority []byte
	namespace string
	token     string
	tokenFile string // where the file says to read the token; empty: it stands in the file
}

// write puts a new file into dir and returns its path.
func (a access) write(dir string) (string, error) {
	const name = "kubetest"
	c := api.NewConfig()
	c.CurrentContext = name
	c.Clusters[name] = &api.Cluster{Server: a.server, CertificateAuthorityData: a.authority}
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name, Namespace: a.namespace}
	c.AuthInfos[name] = &api.AuthInfo{Token: a.token}
	if a.tokenFile != "" {
		c.AuthInfos[name] = &api.AuthInfo{TokenFile: a.tokenFile}
	}
	raw, err := clientcmd.Write(*c)
	if err != nil {
		return "", fmt.Errorf("kubetest: kubeconfig: %w", err)
	}
	return writeNew(dir, "kubeconfig-*", raw)
}

// readAccess reads a file that write made.
func readAccess(path string) (access, error) {
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return access{}, fmt.Errorf("kubetest: kubeconfig: %w", err)
	}
	context := c.Contexts[c.CurrentContext]
	cluster, user := c.Clusters[context.Cluster], c.AuthInfos[context.AuthInfo]
	return access{cluster.Server, cluster.CertificateAuthorityData, context.Namespace, user.Token, user.TokenFile}, nil
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
