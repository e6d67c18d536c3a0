package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

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
