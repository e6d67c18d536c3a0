package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Announce implements lease.Announcer: an Event of the lease, which kubectl describe shows. It is one POST.
// The recorder of client-go would add 6 MB to a program, try one Event for two minutes where the server is
// away, and need the right to patch Events.
func (s *Store) Announce(ctx context.Context, reason, text string, warning bool) error {
	kind := "Normal"
	if warning {
		kind = "Warning"
	}
	now := time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": kind, "reason": reason, "message": text,
		"metadata": map[string]any{"generateName": s.client.name + ".", "namespace": s.client.namespace},
		"involvedObject": map[string]any{
			"apiVersion": s.client.dialect.version.String(), "kind": kindName,
			"namespace": s.client.namespace, "name": s.client.name,
			"uid": s.uid.Load(), // kubectl goes by it; null while the lease was never seen
		},
		"source": map[string]any{"component": fieldManager}, "reportingComponent": fieldManager,
		"firstTimestamp": now, "lastTimestamp": now, "count": 1,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(quiet(ctx), s.client.timeout)
	defer cancel()
	req := s.client.rest.Post().AbsPath("/api/v1/namespaces", s.client.namespace, "events")
	err = req.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).MaxRetries(0).Do(ctx).Error()
	if err != nil {
		err = fmt.Errorf("lease %s: write an Event: %w%s", s, err, s.roleAdvice(err, "create", "events"))
	}
	return refused(err)
}
