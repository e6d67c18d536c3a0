package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const (
	rbacGroup   = "rbac.authorization.k8s.io"
	rbacAPI     = "/apis/" + rbacGroup + "/v1/namespaces/"
	coreAPI     = "/api/v1/namespaces"
	leaseAPI    = "/apis/coordination.k8s.io/v1/namespaces/"
	tokenLife   = 24 * time.Hour
	leaseGroup  = "coordination.k8s.io"
	namedPrefix = "sbr-"
)

type object map[string]any

// Do sends one request as administrator, with body as JSON (a merge patch for PATCH; nil for none), and
// returns the status code and the answer. It is for setting a scene: it never retries.
func (c *Cluster) Do(ctx context.Context, method, path string, body any) (int, []byte, error) {
	code, answer, err := c.admin.do(ctx, method, path, body)
	if err != nil {
		return 0, nil, fmt.Errorf("kubetest: %w", err)
	}
	return code, answer, nil
}

// Send is Do for a body of any type. It returns the body of the answer beside it.
func (c *Cluster) Send(ctx context.Context, method, path, contentType string, body []byte) (
	*http.Response, []byte, error) {
	return c.admin.send(ctx, method, path, contentType, body)
}

// CreateNamespace creates a namespace. A namespace that is there already is fine.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	if _, err := c.admin.create(ctx, coreAPI, object{"metadata": object{"name": name}}); err != nil {
		return fmt.Errorf("kubetest: namespace %s: %w", name, err)
	}
	return nil
}

// AccountKubeconfig returns the path of a kubeconfig of a service account, with namespace as its namespace.
// It creates both as needed. It gives no rights: the caller makes the Role and the RoleBinding, and waits
// until they are in force.
func (c *Cluster) AccountKubeconfig(ctx context.Context, namespace, account string) (string, error) {
	path := coreAPI + "/" + namespace + "/serviceaccounts"
	err := c.CreateNamespace(ctx, namespace)
	if err == nil {
		_, err = c.admin.create(ctx, path, object{"metadata": object{"name": account}})
	}
	user := c.admin.access
	user.namespace = namespace
	if err == nil {
		user.token, err = c.issueToken(ctx, namespace, account)
	}
	if err != nil {
		return "", fmt.Errorf("kubetest: service account %s/%s: %w", namespace, account, err)
	}
	return user.write(c.dir.path)
}

// LeastPrivilegeKubeconfig returns the path of the kubeconfig of LeastPrivilegeAccount.
func (c *Cluster) LeastPrivilegeKubeconfig(ctx context.Context, namespace, lease string) (string, error) {
	a, err := c.LeastPrivilegeAccount(ctx, namespace, lease)
	if err != nil {
		return "", err
	}
	return a.Kubeconfig(), nil
}

func (c *Cluster) createAccount(ctx context.Context, namespace, name, lease string) error {
	metadata := object{"name": name}
	rules := []object{{
		"apiGroups": []string{leaseGroup}, "resources": []string{"leases"}, "resourceNames": []string{lease},
		"verbs": []string{"get", "watch", "update", "patch", "create"},
	}, {
		"apiGroups": []string{""}, "resources": []string{"namespaces"}, "verbs": []string{"get"},
	}, {
		"apiGroups": []string{""}, "resources": []string{"events"}, "verbs": []string{"create"},
	}}
	steps := []struct {
		path   string
		object object
	}{
		{coreAPI + "/" + namespace + "/serviceaccounts", object{"metadata": metadata}},
		{rbacAPI + namespace + "/roles", object{"metadata": metadata, "rules": rules}},
		{rbacAPI + namespace + "/rolebindings", object{
			"metadata": metadata,
			"roleRef":  object{"apiGroup": rbacGroup, "kind": "Role", "name": name},
			"subjects": []object{{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
		}},
	}
	for _, step := range steps {
		if _, err := c.admin.create(ctx, step.path, step.object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) issueToken(ctx context.Context, namespace, account string) (string, error) {
	path := coreAPI + "/" + namespace + "/serviceaccounts/" + account + "/token"
	answer, err := c.admin.create(ctx, path,
		object{"spec": object{"expirationSeconds": int(tokenLife.Seconds())}})
	if err != nil {
		return "", err
	}
	var issued struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	if err := json.Unmarshal(answer, &issued); err != nil || issued.Status.Token == "" {
		return "", fmt.Errorf("POST %s: no token in the answer: %.200s", path, answer)
	}
	return issued.Status.Token, nil
}

// awaitAnswer waits until a read of the lease is answered with one of these codes.
func (c *Cluster) awaitAnswer(ctx context.Context, user access, lease string, codes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	probe, err := newClient(user, c.place.Dial)
	if err != nil {
		return err
	}
	defer probe.close()
	path := leaseAPI + user.namespace + "/leases/" + lease
	return poll(ctx, func() error {
		code, answer, err := probe.do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if !slices.Contains(codes, code) {
			return unexpected(http.MethodGet, path, code, answer)
		}
		return nil
	})
}

const pollEvery = 20 * time.Millisecond

// poll repeats try until it passes or ctx ends; then its last word is the error.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}

// identity is a certificate for one address that is its own authority, and its key.
type identity struct {
	certPEM []byte
	keyPEM  []byte
}

// newIdentity makes that of the API server. ECDSA, because making RSA keys takes a good part of a second under
// the race detector.
func newIdentity(address string) (identity, error) {
	const name = "kube-apiserver"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, fmt.Errorf("kubetest: key of %s: %w", name, err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		// An hour of slack: tests also run on machines whose clock is being set.
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		IPAddresses:           []net.IP{net.ParseIP(address)},
		DNSNames:              []string{"localhost"},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return identity{}, fmt.Errorf("kubetest: certificate of %s: %w", name, err)
	}
	// Not PKCS #8: the API server reads its own public keys from such a file only in this form.
	rawKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return identity{}, fmt.Errorf("kubetest: key of %s: %w", name, err)
	}
	return identity{
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey}),
	}, nil
}

// clientTLS trusts one authority and nothing else.
func clientTLS(authorityPEM []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorityPEM) {
		return nil, fmt.Errorf("kubetest: no certificate among the %d bytes of the authority", len(authorityPEM))
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

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
	return access{cluster.Server, cluster.CertificateAuthorityData, context.Namespace, user.Token,
		user.TokenFile}, nil
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
