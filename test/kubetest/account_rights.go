package kubetest

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// Account is a service account with the rights of [Cluster.LeastPrivilegeKubeconfig], which can be taken away
// and given back. Its token lies in a file of its own, as the kubelet writes it: clients that read that file
// each time get a renewed token.
type Account struct {
	cluster          *Cluster
	namespace, lease string
	user             access
	kubeconfig       string
}

// LeastPrivilegeAccount makes the account, the namespace and the rights as needed. When it returns, the
// rights are in force.
func (c *Cluster) LeastPrivilegeAccount(ctx context.Context, namespace, lease string) (*Account, error) {
	a := &Account{cluster: c, namespace: namespace, lease: lease}
	err := c.CreateNamespace(ctx, namespace)
	if err == nil {
		a.user, err = c.leastPrivilege(ctx, namespace, lease)
	}
	if err == nil {
		a.user.tokenFile, err = writeNew(c.dir.path, "token-*", []byte(a.user.token))
	}
	if err == nil {
		a.kubeconfig, err = a.user.write(c.dir.path)
	}
	if err != nil {
		return nil, a.failed("an account with rights", err)
	}
	return a, nil
}

// Kubeconfig is the path of a kubeconfig that names the token's file.
func (a *Account) Kubeconfig() string { return a.kubeconfig }

func (a *Account) failed(what string, err error) error {
	return fmt.Errorf("kubetest: %s on lease %s/%s: %w", what, a.namespace, a.lease, err)
}

func (a *Account) bindingPath() string { return rbacAPI + a.namespace + "/rolebindings" }

func (a *Account) accountPath() string { return coreAPI + "/" + a.namespace + "/serviceaccounts" }

// TakeRights deletes the RoleBinding. When it returns, the API server answers 403.
func (a *Account) TakeRights(ctx context.Context) error {
	err := a.remove(ctx, a.bindingPath()+"/"+a.name())
	if err == nil {
		err = a.await(ctx, http.StatusForbidden)
	}
	if err != nil {
		return a.failed("taking the rights away", err)
	}
	return nil
}

// GiveRights ends TakeRights. When it returns, the rights are in force.
func (a *Account) GiveRights(ctx context.Context) error {
	err := a.cluster.createAccount(ctx, a.namespace, a.name(), a.lease)
	if err == nil {
		err = a.await(ctx, http.StatusOK, http.StatusNotFound)
	}
	if err != nil {
		return a.failed("giving the rights back", err)
	}
	return nil
}

// ExpireToken makes the API server refuse the token, as if it had run out: the account that it was issued to
// is deleted, and made anew. When it returns, the API server answers 401; that takes the 10 s for which it
// remembers a token.
func (a *Account) ExpireToken(ctx context.Context) error {
	err := a.remove(ctx, a.accountPath()+"/"+a.name())
	if err == nil {
		err = a.cluster.createAccount(ctx, a.namespace, a.name(), a.lease)
	}
	if err == nil {
		err = a.await(ctx, http.StatusUnauthorized)
	}
	if err != nil {
		return a.failed("ending the token of the account", err)
	}
	return nil
}

// RenewToken writes a new token into the file. When it returns, the API server takes it.
func (a *Account) RenewToken(ctx context.Context) error {
	token, err := a.cluster.issueToken(ctx, a.namespace, a.name())
	if err == nil {
		a.user.token = token
		err = a.await(ctx, http.StatusOK, http.StatusNotFound)
	}
	if err == nil {
		// In one step: a reader never sees half a token.
		var next string
		if next, err = writeNew(a.cluster.dir.path, "token-*", []byte(token)); err == nil {
			err = os.Rename(next, a.user.tokenFile)
		}
	}
	if err != nil {
		return a.failed("renewing the token of the account", err)
	}
	return nil
}

func (a *Account) name() string { return namedPrefix + a.lease }

func (a *Account) remove(ctx context.Context, path string) error {
	code, answer, err := a.cluster.admin.do(ctx, http.MethodDelete, path, nil)
	if err == nil && code != http.StatusOK {
		err = unexpected(http.MethodDelete, path, code, answer)
	}
	return err
}

// await waits until the API server gives one of these answers to a read of the lease.
func (a *Account) await(ctx context.Context, codes ...int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return a.cluster.awaitAnswer(ctx, a.user, a.lease, codes...)
}
