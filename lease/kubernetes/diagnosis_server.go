package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAnswer bounds what is read of an answer. The largest is the list of a group's resources.
const maxAnswer = 1 << 20

// reachable asks for the version, which every user may; any answer at all will do.
func (d *doctor) reachable(ctx context.Context) bool {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	start := time.Now()
	code, header, err := d.ask(ctx, http.MethodGet, "/version", nil, &version)
	if err != nil {
		err = fmt.Errorf("%w%s", err, d.store.advice(err))
		d.add(checkReachable, Failed, "", "%s: %s", d.base, oneLine(err))
		return false
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		middle := start.Add(time.Since(start) / 2)
		diff := date.Add(500 * time.Millisecond).Sub(middle.Round(0))
		d.out.ClockDifference = &diff
	}
	if version.GitVersion == "" {
		d.add(checkReachable, Warning, "check that this is the address of an API server",
			"answers, but does not tell its version (%d %s)", code, http.StatusText(code))
		return true
	}
	d.add(checkReachable, OK, "", "answers, %s", version.GitVersion)
	return true
}

func (d *doctor) credentials(ctx context.Context) bool {
	review := authnv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1",
		Kind: "SelfSubjectReview"}}
	code, _, err := d.ask(ctx, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		review, &review)
	user := review.Status.UserInfo.Username
	const fix = "check the kubeconfig's user, or the token: a service account's is renewed by the kubelet, a copy of it runs out"
	switch {
	case err != nil:
		d.add(checkCredentials, Failed, "", "%s", oneLine(err))
		return false
	case code == http.StatusUnauthorized:
		d.add(checkCredentials, Failed, fix, "the server does not accept them (401)")
		return false
	case user == "system:anonymous":
		d.add(checkCredentials, Failed, fix, "none were sent: the server takes this for %s", user)
		return false
	case user == "":
		d.add(checkCredentials, OK, "", "accepted; the server does not say for whom (%d)", code)
		return true
	}
	d.out.User = user
	d.add(checkCredentials, OK, "", "%s", user)
	return true
}

// resource looks whether the API server has such objects at all.
func (d *doctor) resource(ctx context.Context) bool {
	version := d.store.client.dialect.version.String()
	var list metav1.APIResourceList
	code, _, err := d.ask(ctx, http.MethodGet, "/apis/"+version, nil, &list)
	switch {
	case err != nil:
		d.add(checkResource, Failed, "", "%s", oneLine(err))
		return false
	case code == http.StatusOK && slices.ContainsFunc(list.APIResources, isLeases):
		d.add(checkResource, OK, "", "%s/%s is installed", version, resource)
		return true
	case code == http.StatusNotFound || code == http.StatusOK:
		fix := "the API server is older than v1.14"
		if d.cfg.api().Custom() {
			fix = fmt.Sprintf("install it once: sbr manifests --crd --api %s … | kubectl apply -f -", d.cfg.api())
		}
		d.add(checkResource, Failed, fix, "%s/%s is not installed", version, resource)
		return false
	default:
		d.add(checkResource, Warning, "", "the server does not list %s (%d %s)", version, code,
			http.StatusText(code))
		return true
	}
}

func isLeases(r metav1.APIResource) bool { return r.Name == resource }

// rights asks for each verb by itself. It goes on whatever the answer, since the dry run tries the real
// thing.
func (d *doctor) rights(ctx context.Context) bool {
	for _, verb := range []string{"get", "watch", "patch", "update", "create"} {
		creates := verb == "create" || verb == "update"
		if verb == "update" && d.store.client.dialect.posts {
			continue
		}
		group, name := d.cfg.api().Group(), d.store.client.name
		review, err := d.allowed(ctx, verb, group, resource, name)
		check := checkRights + verb
		fix := fmt.Sprintf("add the verb %q for %s/%s %q to the Role: sbr manifests prints it",
			verb, group, resource, name)
		switch {
		case err != nil:
			d.add(check, Warning, "", "the server does not say: %s", oneLine(err))
		case review.Status.Allowed:
			d.add(check, OK, "", "allowed")
		case creates:
			d.add(check, Warning, fix+"; or leave it away and create the lease beforehand",
				"denied: needed only while the lease does not exist%s", reasonOf(review))
		default:
			d.add(check, Failed, fix, "denied%s", reasonOf(review))
		}
	}
	if review, err := d.allowed(ctx, "create", "", "events", ""); err == nil && !review.Status.Allowed {
		d.add(checkEvents, Warning, "add the verb \"create\" for events to the Role: sbr manifests prints it",
			"may not be written: kubectl describe will not show suspensions and verdicts%s", reasonOf(review))
	}
	if _, err := d.store.Identity(ctx); err != nil {
		fix := ""
		if isForbidden(err) {
			fix = `add the rule {apiGroups: [""], resources: [namespaces], verbs: [get]} to the Role: sbr manifests prints it`
		}
		d.add(checkIdentity, Warning, fix,
			"not known: a member with another store is not noticed, and both sides of a partition may stay up: %s", oneLine(err))
	}
	return true
}

func (d *doctor) allowed(ctx context.Context, verb, group, resource, name string) (
	*authzv1.SelfSubjectAccessReview, error) {
	review := &authzv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authzv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authzv1.ResourceAttributes{
			Namespace: d.store.client.namespace, Verb: verb, Group: group, Version: "v1", Resource: resource,
			Name: name,
		}},
	}
	code, _, err := d.ask(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		review, review)
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("%d %s", code, http.StatusText(code))
	}
	return review, err
}

func reasonOf(review *authzv1.SelfSubjectAccessReview) string {
	if review.Status.Reason == "" {
		return ""
	}
	return " (" + review.Status.Reason + ")"
}

// ask makes one request. The error says that there was no answer; an answer of 2xx is decoded into out.
func (d *doctor) ask(ctx context.Context, method, path string, in, out any) (
	code int, header http.Header, err error) {
	ctx, cancel := context.WithTimeoutCause(quiet(ctx), d.cfg.RequestTimeout,
		fmt.Errorf("%w within %s", errNoAnswer, d.cfg.RequestTimeout))
	defer cancel()
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return 0, nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(d.base, "/")+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := d.store.client.rest.Client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
			err = cause
		}
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode/100 == 2 && out != nil {
		if json.Unmarshal(data, out) != nil {
			err = fmt.Errorf("%s %s: the answer is no JSON: something other than an API server has answered",
				method, path)
		}
	}
	return resp.StatusCode, resp.Header, err
}
