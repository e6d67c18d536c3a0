package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serf-sbr/serf-sbr/lease"
)

// ErrNotInstalled is wrapped by an error of every method when the API server does not know the resource at
// all: the CustomResourceDefinition is missing, or what answered is no API server. It never passes for a
// lease that is free.
var ErrNotInstalled = errors.New("the API server does not know the resource")

// apiStatus returns what the API server itself answered. An answer that client-go had to guess from a bare
// status code does not count: a proxy's 409 says nothing about the lease.
func apiStatus(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsUnexpectedServerError(err) {
		return metav1.Status{}, false
	}
	return status.Status(), true
}

// classify returns lease.ErrConflict, lease.ErrRefused or lease.ErrTooLarge if the write certainly did not
// take place, nil if that is unknown.
func classify(creating bool, err error) error {
	if errors.Is(err, lease.ErrRefused) {
		return lease.ErrRefused
	}
	status, ok := apiStatus(err)
	if !ok {
		return nil
	}
	switch code := status.Code; {
	case code == http.StatusConflict:
		return lease.ErrConflict
	case code == http.StatusNotFound && !creating && detailKind(status) == resource:
		return lease.ErrConflict // deleted meanwhile
	case code == http.StatusUnprocessableEntity && staleInvalid(status):
		return lease.ErrConflict
	case code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity && tooLong(status):
		return lease.ErrTooLarge
	case code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests:
		return nil // they pass
	case 400 <= code && code < 500:
		return lease.ErrRefused
	default:
		return nil // a 5xx may follow a committed write
	}
}

// staleInvalid recognises the conflicts that the server reports as invalid: a PUT without a version on a
// lease that meanwhile exists, and another object that has, after a restored backup, the same version.
func staleInvalid(status metav1.Status) bool {
	return hasCause(status, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid" || c.Field == "metadata.resourceVersion"
	})
}

func tooLong(status metav1.Status) bool {
	return hasCause(status, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.annotations" &&
			(c.Type == metav1.CauseType("FieldValueTooLong") || strings.Contains(c.Message, "Too long"))
	})
}

func hasCause(status metav1.Status, is func(metav1.StatusCause) bool) bool {
	return status.Details != nil && slices.ContainsFunc(status.Details.Causes, is)
}

func detailKind(status metav1.Status) string {
	if status.Details == nil {
		return ""
	}
	return status.Details.Kind
}

// unknownResource recognises both shapes: the server's plain "404 page not found" for a group or version that
// is not installed, which a proxy could have made as well, and a status without a kind.
func unknownResource(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusNotFound {
		return false
	}
	return detailKind(status.Status()) == "" || apierrors.IsUnexpectedServerError(err)
}

// recognise adds ErrNotInstalled to an error that means that.
func recognise(err error) error {
	if unknownResource(err) {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return err
}

func (s *Store) fail(action string, err error) error {
	err = recognise(err)
	err = fmt.Errorf("lease %s: %s: %w%s", s, action, err, s.advice(err))
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return postponed{err, time.Duration(seconds) * time.Second}
	}
	return err
}

// postponed is an error with which the API server says when it wants to be asked again.
type postponed struct {
	error
	after time.Duration
}

// Unwrap returns what the API server said.
func (p postponed) Unwrap() error { return p.error }

// RetryAfter is how long the API server wants to be left alone.
func (p postponed) RetryAfter() time.Duration { return p.after }

func (s *Store) failWrite(creating bool, err error) error {
	kind := classify(creating, err)
	err = recognise(err)
	switch {
	case kind == nil:
		return s.fail("write, outcome unknown", err)
	case errors.Is(err, kind):
		return fmt.Errorf("lease %s: %w", s, err)
	case errors.Is(kind, lease.ErrTooLarge):
		return fmt.Errorf("lease %s: %w: %w: %w", s, lease.ErrRefused, kind, err)
	default:
		return fmt.Errorf("lease %s: %w: %w%s", s, kind, err, s.advice(err))
	}
}

// advice says in brackets what to do about an error, or nothing.
func (s *Store) advice(err error) string {
	text := s.statusAdvice(err)
	if text == "" {
		text = networkAdvice(err)
	}
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (s *Store) notInstalledAdvice() string {
	group := s.client.dialect.version.String()
	if !s.api.Custom() {
		return "the server has no " + group + ": is it a Kubernetes API server?"
	}
	return fmt.Sprintf("the server has no %s of %s: let an administrator install the CustomResourceDefinition %s, which sbr manifests prints",
		resource, group, s.client.dialect.plain)
}

func (s *Store) statusAdvice(err error) string {
	if errors.Is(err, ErrNotInstalled) {
		return s.notInstalledAdvice()
	}
	status, ok := apiStatus(err)
	if !ok {
		return ""
	}
	switch {
	case status.Code == http.StatusUnauthorized:
		return "the credentials were not accepted: expired, revoked or of another cluster"
	case status.Code == http.StatusNotFound && detailKind(status) == "namespaces":
		return "the namespace does not exist: create it, or set lease.kubernetes.namespace"
	case status.Code != http.StatusForbidden:
		return ""
	case hasCause(status, func(c metav1.StatusCause) bool { return c.Type == "NamespaceTerminating" }):
		return "the namespace is being deleted"
	case strings.Contains(status.Message, `"system:anonymous"`):
		return "the request had no credentials: is the service account's token mounted, or a user set in the kubeconfig?"
	case strings.Contains(status.Message, "cannot "):
		return fmt.Sprintf("a Role in namespace %s must allow %s on resource %s of apiGroup %s with resourceNames [%s]",
			s.client.namespace, s.client.dialect.rights, resource, s.client.dialect.version.Group, s.client.name)
	default:
		return "denied by a quota or an admission rule"
	}
}

func networkAdvice(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		dns       *net.DNSError
		token     *tokenError
	)
	switch {
	case errors.As(err, &token):
		return "is the service account's token mounted?"
	case errors.As(err, &authority):
		return "the API server's certificate is not of the configured authority: check certificate-authority in the kubeconfig, or ca.crt of the service account"
	case errors.As(err, &hostname), errors.As(err, &invalid):
		return "the API server's certificate is not valid for this address or at this time"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the address does not speak TLS: check the server in the kubeconfig"
	case errors.As(err, &dns):
		return "the API server's name is not known: check the server in the kubeconfig, and DNS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at the API server's address"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errOpenTimeout):
		return "no answer from the API server: address, proxy or network policy?"
	default:
		return ""
	}
}

// refusal is an error that is lease.ErrRefused as well, in the words of what it wraps.
type refusal struct{ error }

// Is implements errors.Is.
func (refusal) Is(target error) bool { return target == lease.ErrRefused }

// Unwrap returns what the API server said.
func (r refusal) Unwrap() error { return r.error }
