package main

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

const (
	defaultURL = "http://127.0.0.1:7380"
	maxSecret  = 1 << 20 // a token or certificates
)

const agentHelp = `
The agent is the one at --url, else the one that a configuration describes (-f), else that of the environment variable SBR_URL,
else ` + defaultURL + `. With -f the token and the certificate of the agent are taken from its configuration, too.`

// agentFlags say which agent is asked.
type agentFlags struct {
	url, file, tokenFile, caFile string
	timeout                      time.Duration
}

func addAgent(c *cobra.Command) *agentFlags {
	a := addAgentURL(c)
	c.Flags().StringVarP(&a.file, "file", "f", "", "the agent's configuration (sbr.yaml), which says where it listens")
	return a
}

// addAgentURL is addAgent for a command whose -f is there already.
func addAgentURL(c *cobra.Command) *agentFlags {
	var a agentFlags
	flags := c.Flags()
	flags.StringVar(&a.url, "url", "", "where the agent listens, such as http://127.0.0.1:7380 (default: $SBR_URL, else that)")
	flags.StringVar(&a.tokenFile, "token-file", "", "file with the token that the agent wants")
	flags.StringVar(&a.caFile, "ca-file", "", "file with the certificates to trust, PEM (default: those of this machine)")
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for an answer")
	return &a
}

// client returns a client for the agent that the flags, a configuration and the environment name.
func (a *agentFlags) client() (*agentClient, error) {
	if a.timeout <= 0 {
		return nil, badInput{fmt.Errorf("--timeout %v: it must be positive", a.timeout)}
	}
	at := place{name: "--url", url: a.url, tokenFile: a.tokenFile, caFile: a.caFile}
	if a.file != "" {
		if err := at.configured(a.file); err != nil {
			return nil, badInput{err}
		}
	}
	if at.url == "" {
		at.name, at.url = "SBR_URL", os.Getenv("SBR_URL")
	}
	if at.url == "" {
		at.url = defaultURL
	}
	base, err := baseURL(at.url)
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", at.name, err)}
	}
	token, err := readToken(at.tokenFile)
	if err != nil {
		return nil, badInput{err}
	}
	roots, err := readRoots(at.caFile)
	if err != nil {
		return nil, badInput{err}
	}
	return newAgentClient(base, token, roots, a.timeout), nil
}

// place is where an agent listens, and what it takes to be heard there.
type place struct {
	name, url, tokenFile, caFile string
}

// configured fills in what the flags left open. The agent's own certificate is trusted as it is, whoever signed it.
func (p *place) configured(path string) error {
	f, err := config.Load(path)
	if err != nil {
		return err
	}
	p.tokenFile, p.caFile = cmp.Or(p.tokenFile, f.HTTP.TokenFile), cmp.Or(p.caFile, f.HTTP.TLSCertFile)
	if p.url != "" {
		return nil
	}
	scheme := "http"
	if f.HTTP.TLSCertFile != "" {
		scheme = "https"
	}
	p.name = path + ": http.listen"
	if p.url, err = listenURL(f.HTTP.Listen, scheme); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// listenURL is where somebody on the same machine reaches a server that listens there.
func listenURL(listen, scheme string) (string, error) {
	if listen == "" {
		return "", errors.New("is empty: this agent serves no status")
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}).String(), nil
}

// baseURL checks a URL and leaves away what is not needed at its end.
func baseURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q: it must be http://HOST:PORT or https://HOST:PORT", text)
	}
	if u.User != nil {
		return "", errors.New("it must not hold a user or a password: an agent wants a token, see --token-file")
	}
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/status"), nil
}

// readSecret reads a small file.
func readSecret(path string) ([]byte, error) {
	if err := notPipe(path); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err == nil && len(data) > maxSecret {
		err = fmt.Errorf("%s: is larger than %d bytes", path, maxSecret)
	}
	return data, err
}

func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	data, err := readSecret(path)
	if err != nil {
		return "", fmt.Errorf("token-file: %w", err)
	}
	token := string(bytes.TrimSpace(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token-file: %s: it must hold one token: letters, digits and signs without blanks", path)
	}
	return token, nil
}

func readRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil // those of the machine
	}
	data, err := readSecret(path)
	if err != nil {
		return nil, fmt.Errorf("ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("ca-file: %s: there is no certificate in it (PEM, -----BEGIN CERTIFICATE-----)", path)
	}
	return pool, nil
}
