package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// client sends single requests with one access. It is small on purpose: a full client retries and hides what
// the server said.
type client struct {
	access access
	http   *http.Client
}

// newClient returns a client that connects by dial; nil: in the ordinary way.
func newClient(a access, dial func(ctx context.Context, network, address string) (net.Conn, error)) (
	*client, error) {
	trust, err := clientTLS(a.authority)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DialContext: dial}
	return &client{access: a, http: &http.Client{Transport: transport}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) do(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return 0, nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	response, answer, err := c.send(ctx, method, path, contentType(method), content)
	if err != nil {
		return 0, nil, err
	}
	return response.StatusCode, answer, nil
}

// send returns the answer, and what was in its body, which is closed.
func (c *client) send(ctx context.Context, method, path, contentType string, body []byte) (
	*http.Response, []byte, error) {
	request, err := c.request(ctx, method, path, contentType, body)
	if err != nil {
		return nil, nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	return response, answer, nil
}

func (c *client) request(ctx context.Context, method, path, contentType string, body []byte) (
	*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.access.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.access.token)
	request.Header.Set("Content-Type", contentType)
	return request, nil
}

func contentType(method string) string {
	if method == http.MethodPatch {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// create posts an object; an object that is there already is fine, since several tests may ask for the same
// namespace or role.
func (c *client) create(ctx context.Context, path string, object any) ([]byte, error) {
	code, answer, err := c.do(ctx, http.MethodPost, path, object)
	if err != nil {
		return nil, err
	}
	if code != http.StatusCreated && code != http.StatusConflict {
		return nil, unexpected(http.MethodPost, path, code, answer)
	}
	return answer, nil
}

// unexpected shows an answer in one line.
func unexpected(method, path string, code int, answer []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(answer, &status)
	if status.Message == "" {
		status.Message = strings.Join(strings.Fields(string(answer)), " ")
	}
	return fmt.Errorf("%s %s: %d %s", method, path, code, status.Message)
}
