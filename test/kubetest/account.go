package kubetest

import (
	"context"
	"fmt"
)

// AccountKubeconfig returns the path of a kubeconfig of a service account, with namespace as its namespace.
// It creates both as needed. It gives no rights: the caller makes the Role and the RoleBinding, and waits
// until they are in force.
func (c *Cluster) AccountKubeconfig(ctx context.Context, namespace, account string) (string, error) {
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		return "", err
	}
	path := coreAPI + "/" + namespace + "/serviceaccounts"
	if _, err := c.admin.create(ctx, path, object{"metadata": object{"name": account}}); err != nil {
		return "", fmt.Errorf("kubetest: service account %s/%s: %w", namespace, account, err)
	}
	token, err := c.issueToken(ctx, namespace, account)
	if err != nil {
		return "", fmt.Errorf("kubetest: service account %s/%s: %w", namespace, account, err)
	}
	user := c.admin.access
	user.namespace, user.token = namespace, token
	return user.write(c.dir.path)
}
