package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
)

// maxStatus is far more than the status of the largest cluster.
const maxStatus = 16 << 20

// agentClient asks one agent.
type agentClient struct {
	url     string // without /status
	token   string
	timeout time.Duration
	http    *http.Client
}

// newAgentClient asks without a proxy: an agent is next to whoever asks, and its token is for nobody else.
func newAgentClient(url, token string, roots *x509.CertPool, timeout time.Duration) *agentClient {
	return &agentClient{url: url, token: token, timeout: timeout, http: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // an agent never sends anybody away
	}}
}

// agentAnswer is what an agent answered.
type agentAnswer struct {
	downing.Status
	raw []byte    // as it came
	now time.Time // on the agent's clock, to the second
}

// status asks for GET /status. Its errors are one line each.
func (c *agentClient) status(ctx context.Context) (*agentAnswer, error) {
	data, now, err := c.get(ctx, "/status")
	if err != nil {
		return nil, err
	}
	return c.read(data, now)
}

// get asks for a path. Its errors are one line each.
func (c *agentClient) get(ctx context.Context, path string) (data []byte, now time.Time, err error) {
	response, data, err := c.ask(ctx, http.MethodGet, path, nil)
	if err == nil {
		err = c.refused(response, data)
	}
	if err != nil {
		return nil, now, err
	}
	return data, clockOf(response), nil
}

// ask sends a request, and reads the whole answer. Its errors are one line each.
func (c *agentClient) ask(ctx context.Context, method, path string, body []byte) (response *http.Response, data []byte, err error) {
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
		return nil, nil, c.stranger("an answer of more than %d MiB", maxStatus>>20)
	}
	return response, data, nil
}

// read understands an answer.
func (c *agentClient) read(data []byte, now time.Time) (*agentAnswer, error) {
	a := &agentAnswer{raw: data, now: now}
	if err := json.Unmarshal(data, &a.Status); err != nil {
		if !json.Valid(data) {
			return nil, c.stranger("something that is not JSON")
		}
		return nil, c.stranger("JSON that is not a status (%w)", err)
	}
	if a.Member == "" || a.State == "" {
		return nil, c.stranger("JSON that is not a status (it has no member or no state)")
	}
	return a, nil
}

func clockOf(r *http.Response) time.Time {
	if at, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		return at
	}
	return time.Now()
}

func (c *agentClient) stranger(format string, args ...any) error {
	return fmt.Errorf("%s answers with "+format+": is another service on this port?", append([]any{c.url}, args...)...)
}

// refused says what an answer other than 200 means.
func (c *agentClient) refused(r *http.Response, body []byte) error {
	switch {
	case r.StatusCode == http.StatusOK:
		return nil
	case r.StatusCode == http.StatusUnauthorized && c.token == "":
		return fmt.Errorf("%s wants a token: give --token-file, the file that the agent's http.token-file names", c.url)
	case r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s refuses the token (%s): give --token-file, the file that the agent's http.token-file names", c.url, r.Status)
	case r.StatusCode == http.StatusBadRequest && saysTLS(body):
		return fmt.Errorf("%s speaks TLS only: use https:// and, for a certificate authority of your own, --ca-file", c.url)
	case r.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%s does not work: it answers %s; look into the agent's log", c.url, r.Status)
	default:
		return c.stranger("%s", r.Status)
	}
}

// saysTLS knows the answer of Go's server to plain HTTP where it expects TLS.
func saysTLS(body []byte) bool {
	return bytes.Contains(body, []byte("HTTP request to an HTTPS server"))
}

// errNobodyListens is wrapped where no process is there that could answer. Every other error may hide an agent that runs.
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
		return fmt.Errorf("the certificate of %s is for another name (%w): give --url with a name that is in it", c.url, host)
	case errors.As(err, &record) || strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not speak TLS: use http://", c.url)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("no agent answers at %s: nobody knows a host %q", c.url, dns.Name)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no agent answers at %s: no answer within %v", c.url, c.timeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent answers at %s: %w: is sbr agent running, and http.listen set?", c.url, errNobodyListens)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("no agent answers at %s: the connection was closed without an answer", c.url)
	default:
		return fmt.Errorf("no agent answers at %s: %s", c.url, innermost(err))
	}
}

// innermost leaves out what the layers above say: the address is known.
func innermost(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
