package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

const (
	defaultURL = "http://127.0.0.1:7380"
	maxRoots   = 1 << 20
)

const agentHelp = `
The agent is the one at --url, else the one that a configuration describes (-f), else that of the environment variable SBR_URL,
else ` + defaultURL +
	`. With -f the token and the certificate of the agent are taken from its configuration, too.`

// agentFlags say which agent is asked.
type agentFlags struct {
	url, file, tokenFile, caFile string
	timeout                      time.Duration
}

func addAgent(c *cobra.Command) *agentFlags {
	a := addAgentURL(c)
	addConfig(c.Flags(), &a.file, " of the agent, which says where it listens")
	return a
}

// addAgentURL is addAgent for a command whose -f is there already.
func addAgentURL(c *cobra.Command) *agentFlags {
	var a agentFlags
	flags := c.Flags()
	a.addURL(flags, "$SBR_URL")
	a.addTrust(flags)
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to wait for an answer")
	return &a
}

// addURL adds the flag that says where the agent listens. Its name is the same at every command.
func (a *agentFlags) addURL(flags *pflag.FlagSet, otherwise string) {
	flags.StringVar(&a.url, "url", "", "where the agent listens (default: "+otherwise+", else "+defaultURL+")")
}

// asking makes of f a verb that asks the agent.
func (a *agentFlags) asking(f func(ctx context.Context, client *agentClient, args []string) error) func(*cobra.Command, []string) error {
	return verbOf(func(c *cobra.Command, args []string) error {
		client, err := a.client()
		if err != nil {
			return err
		}
		return f(c.Context(), client, args)
	})
}

// addTrust adds the flags that say which certificates are trusted.
func (a *agentFlags) addTrust(flags *pflag.FlagSet) {
	flags.StringVar(&a.tokenFile, "token-file", "", "file with the token that the agent wants")
	flags.StringVar(&a.caFile, "ca-file", "",
		"file with the certificates to trust, PEM (default: those of this machine)")
}

// client returns a client for the agent that the flags, a configuration and the environment name. It trusts
// the agent's own certificate, which its configuration names, whatever authority signed it.
func (a *agentFlags) client() (*agentClient, error) {
	if a.timeout <= 0 {
		return nil, badInput{fmt.Errorf("--timeout %v: it must be positive", a.timeout)}
	}
	at, name := *a, "--url"
	if a.file != "" {
		f, err := config.Load(a.file)
		if err != nil {
			return nil, badInput{err}
		}
		at.tokenFile, at.caFile = cmp.Or(a.tokenFile, f.HTTP.TokenFile), cmp.Or(a.caFile, f.HTTP.TLSCertFile)
		if at.url == "" {
			name = a.file + ": http.listen"
			if at.url, err = listenURL(&f.HTTP); err != nil {
				return nil, badInput{fmt.Errorf("%s: %w", name, err)}
			}
		}
	}
	if at.url == "" {
		name, at.url = "SBR_URL", cmp.Or(os.Getenv("SBR_URL"), defaultURL)
	}
	base, err := baseURL(at.url)
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", name, err)}
	}
	token := ""
	if at.tokenFile != "" {
		if token, err = web.ReadToken(at.tokenFile); err != nil {
			return nil, badInput{fmt.Errorf("token-file: %w", err)}
		}
	}
	roots, err := readRoots(at.caFile)
	if err != nil {
		return nil, badInput{err}
	}
	// Without a proxy: an agent is next to its caller, and its token is for nobody else.
	return &agentClient{who: "agent", url: base, token: token, timeout: a.timeout, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		// an agent never sends anybody away
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// listenURL is where a client on the same machine reaches a server that listens there.
func listenURL(h *config.HTTP) (string, error) {
	scheme := "http"
	if h.TLSCertFile != "" {
		scheme = "https"
	}
	if h.Listen == "" {
		return "", errors.New("is empty: this agent serves no status")
	}
	host, port, err := net.SplitHostPort(h.Listen)
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
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", fmt.Errorf("%q: it must be http://HOST:PORT or https://HOST:PORT", text)
	}
	if u.User != nil {
		return "", errors.New("it must not hold a user or a password: an agent wants a token, see --token-file")
	}
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/status"), nil
}

// readRoots is nil for the certificates of the machine.
func readRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path, maxRoots)
	if err != nil {
		return nil, fmt.Errorf("ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("ca-file: %s: there is no certificate in it (PEM, -----BEGIN CERTIFICATE-----)",
			path)
	}
	return pool, nil
}

// maxStatus is far more than the status of the largest cluster.
const maxStatus = 16 << 20

// agentClient asks one agent, or what answers in the same way.
type agentClient struct {
	who     string // "agent"
	url     string // without /status
	token   string
	timeout time.Duration
	http    *http.Client
}

// agentAnswer is what an agent answered.
type agentAnswer struct {
	downing.Status
	raw []byte    // as it came
	now time.Time // on the agent's clock, to the second
}

// name is empty until the Serf agent that a member starts beside has said it.
func (a *agentAnswer) name() string { return cmp.Or(clean(a.Member), "this member") }

// unwatched reports whether the agent's downing-provider is none.
func (a *agentAnswer) unwatched() bool { return a.State == downing.NoDowning }

const unwatched = "downing-provider is none: nobody watches this node"

// status asks for GET /status. Its errors are one line each.
func (c *agentClient) status(ctx context.Context) (*agentAnswer, error) {
	data, response, err := c.get(ctx, "/status")
	if err != nil {
		return nil, err
	}
	a := &agentAnswer{raw: data, now: time.Now()}
	if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		a.now = at
	}
	switch err := json.Unmarshal(a.raw, &a.Status); {
	case err != nil && !json.Valid(a.raw):
		return nil, c.notAnAgent("something that is not JSON")
	case err != nil:
		return nil, c.notAnAgent("JSON that is not a status (%w)", err)
	case a.Member == "" && a.State != downing.StateStarting && !a.unwatched(), a.State == "":
		return nil, c.notAnAgent("JSON that is not a status (it has no member or no state)")
	}
	return a, nil
}

// get asks for a path, and wants an answer that is one. Its errors are one line each.
func (c *agentClient) get(ctx context.Context, path string) (
	data []byte, response *http.Response, err error) {
	if response, data, err = c.ask(ctx, http.MethodGet, path, nil); err == nil {
		err = c.refused(response, data)
	}
	return data, response, err
}

// ask sends a request, and reads the whole answer. Its errors are one line each.
func (c *agentClient) ask(ctx context.Context, method, path string, body []byte) (
	response *http.Response, data []byte, err error) {
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(within, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, badInput{err}
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err = c.http.Do(request)
	if err != nil {
		return nil, nil, c.unreachable(err)
	}
	defer response.Body.Close()
	data, err = io.ReadAll(io.LimitReader(response.Body, maxStatus+1))
	switch {
	case err != nil && within.Err() != nil:
		return nil, nil, c.unreachable(within.Err())
	case err != nil:
		return nil, nil, fmt.Errorf("the answer of %s breaks off after %d bytes: ask again", c.url, len(data))
	case len(data) > maxStatus:
		return nil, nil, c.notAnAgent("an answer of more than %d MiB", maxStatus>>20)
	}
	return response, data, nil
}

func (c *agentClient) notAnAgent(format string, args ...any) error {
	return fmt.Errorf("%s answers with "+format+": is another service on this port?",
		append([]any{c.url}, args...)...)
}

// tokenHint says whose token is meant.
const tokenHint = ", the file that the agent's http.token-file names"

// refused says what an answer other than 200 means.
func (c *agentClient) refused(r *http.Response, body []byte) error {
	switch {
	case r.StatusCode == http.StatusOK:
		return nil
	case r.StatusCode == http.StatusUnauthorized && c.token == "":
		return fmt.Errorf("%s wants a token: give --token-file%s", c.url, c.ofAgent(tokenHint))
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		hint := c.ofAgent(tokenHint)
		return fmt.Errorf("%s refuses the token (%s): give --token-file%s", c.url, r.Status, hint)
	case r.StatusCode == http.StatusBadRequest &&
		bytes.Contains(body, []byte("HTTP request to an HTTPS server")): // as Go's server says it
		return fmt.Errorf("%s speaks TLS only: use https:// and, for a certificate authority of your own, --ca-file", c.url)
	case r.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%s does not work: it answers %s; look into the %s's log", c.url, r.Status, c.who)
	default:
		return c.notAnAgent("%s", r.Status)
	}
}

// errNobodyListens is wrapped where no process is there that could answer. Every other error may hide an
// agent that runs.
var errNobodyListens = errors.New("connection refused")

// unreachable says why there is no answer, and what to do about it.
func (c *agentClient) unreachable(err error) error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		record    tls.RecordHeaderError
		dns       *net.DNSError
	)
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf("the certificate of %s comes from an authority that this machine does not know: give its certificate with --ca-file", c.url)
	case errors.As(err, &host):
		return fmt.Errorf("the certificate of %s is for another name (%w): give --url with a name that is in it",
			c.url, host)
	case errors.As(err, &record) || strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not speak TLS: use http://", c.url)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("no %s answers at %s: the host %q is unknown", c.who, c.url, dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no %s answers at %s: no answer within %v", c.who, c.url, c.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		hint := c.ofAgent(": is sbr agent running, and http.listen set?")
		return fmt.Errorf("no %s answers at %s: %w%s", c.who, c.url, errNobodyListens, hint)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("no %s answers at %s: the connection was closed without an answer", c.who, c.url)
	default:
		return fmt.Errorf("no %s answers at %s: %s", c.who, c.url, innermost(err))
	}
}

// ofAgent is a hint that is true of an sbr agent only.
func (c *agentClient) ofAgent(hint string) string {
	if c.who != "agent" {
		return ""
	}
	return hint
}

// innermost leaves out what the layers above say: the address is known.
func innermost(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
