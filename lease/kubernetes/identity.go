package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Identity implements lease.Identified: the uid of the lease's namespace. No two clusters, and no two namespaces of one, have the
// same, it stays when the lease is deleted, and a Role in that namespace can give the right to read it. It is the same in
// a cluster that was made from another one's backup.
func (s *Store) Identity(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(quiet(ctx), s.client.timeout)
	defer cancel()
	result := s.client.rest.Get().AbsPath("/api/v1/namespaces", s.client.namespace).MaxRetries(0).Do(ctx)
	var namespace struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := result.Error() // Raw's says less
	if err == nil {
		answer, _ := result.Raw()
		err = json.Unmarshal(answer, &namespace)
	}
	if err == nil && namespace.Metadata.UID == "" {
		err = errNoUID
	}
	if err != nil {
		return "", fmt.Errorf("lease %s: which store it is: %w%s", s, err, s.identityAdvice(err))
	}
	return "kubernetes:" + namespace.Metadata.UID, nil
}

var errNoUID = errors.New("the answer is no stored namespace: it has no uid")

func (s *Store) identityAdvice(err error) string {
	if !isForbidden(err) {
		return s.advice(err)
	}
	return fmt.Sprintf(" (a Role in namespace %s must allow get on resource namespaces: sbr manifests prints it)", s.client.namespace)
}
