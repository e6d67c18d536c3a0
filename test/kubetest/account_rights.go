package kubetest

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

// Account is a service account that may do with the one named lease what the documentation asks for (get,
// watch, update, patch, and create by PUT), and nothing else. All that are made with the same names share the
// account, as the members of one deployment do. The rights can be taken away and given back. Its token lies
// in a file of its own, as the kubelet writes it: clients that read that file each time get a renewed token.
type Account struct {
	cluster    *Cluster
	lease      string
	user       access
	kubeconfig string
}

// LeastPrivilegeAccount makes the account, the namespace and the rights as needed, not the lease. When it
// returns, the rights are in force.
func (c *Cluster) LeastPrivilegeAccount(ctx context.Context, namespace, lease string) (*Account, error) {
	a := &Account{cluster: c, lease: lease, user: c.admin.access}
	a.user.namespace = namespace
	return a, a.do("an account with rights",
		func() error { return c.CreateNamespace(ctx, namespace) },
		a.create(ctx), a.issue(ctx), a.await(ctx, http.StatusOK, http.StatusNotFound),
		func() (err error) {
			a.user.tokenFile, err = writeNew(c.dir.path, "token-*", []byte(a.user.token))
			return err
		},
		func() (err error) {
			a.kubeconfig, err = a.user.write(c.dir.path)
			return err
		})
}

// Kubeconfig is the path of a kubeconfig that names the token's file.
func (a *Account) Kubeconfig() string { return a.kubeconfig }

// TakeRights deletes the RoleBinding. When it returns, the API server answers 403.
func (a *Account) TakeRights(ctx context.Context) error {
	return a.do("taking the rights away",
		a.remove(ctx, rbacAPI+a.user.namespace+"/rolebindings/"), a.await(ctx, http.StatusForbidden))
}

// GiveRights ends TakeRights. When it returns, the rights are in force.
func (a *Account) GiveRights(ctx context.Context) error {
	return a.do("giving the rights back", a.create(ctx), a.await(ctx, http.StatusOK, http.StatusNotFound))
}

// ExpireToken makes the API server refuse the token, as if it had run out: the account that it was issued to
// is deleted, and made anew. When it returns, the API server answers 401; that takes the 10 s for which it
// remembers a token.
func (a *Account) ExpireToken(ctx context.Context) error {
	return a.do("ending the token",
		a.remove(ctx, coreAPI+"/"+a.user.namespace+"/serviceaccounts/"), a.create(ctx),
		a.await(ctx, http.StatusUnauthorized))
}

// RenewToken writes a new token into the file. When it returns, the API server takes it.
func (a *Account) RenewToken(ctx context.Context) error {
	return a.do("renewing the token", a.issue(ctx), a.await(ctx, http.StatusOK, http.StatusNotFound),
		func() error {
			// In one step: a reader never sees half a token.
			next, err := writeNew(a.cluster.dir.path, "token-*", []byte(a.user.token))
			if err == nil {
				err = os.Rename(next, a.user.tokenFile)
			}
			return err
		})
}

func (a *Account) name() string { return namedPrefix + a.lease }

// do takes steps until one fails.
func (a *Account) do(what string, steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("kubetest: lease %s/%s: %s: %w", a.user.namespace, a.lease, what, err)
		}
	}
	return nil
}

// create makes what is missing of the account and its rights.
func (a *Account) create(ctx context.Context) func() error {
	return func() error { return a.cluster.createAccount(ctx, a.user.namespace, a.name(), a.lease) }
}

func (a *Account) issue(ctx context.Context) func() error {
	return func() (err error) {
		a.user.token, err = a.cluster.issueToken(ctx, a.user.namespace, a.name())
		return err
	}
}

// remove deletes the account's object of a collection.
func (a *Account) remove(ctx context.Context, collection string) func() error {
	return func() error {
		path := collection + a.name()
		code, answer, err := a.cluster.admin.do(ctx, http.MethodDelete, path, nil)
		if err == nil && code != http.StatusOK {
			err = unexpected(http.MethodDelete, path, code, answer)
		}
		return err
	}
}

// await waits until the API server gives one of these answers to a read of the lease.
func (a *Account) await(ctx context.Context, codes ...int) func() error {
	return func() error { return a.cluster.awaitAnswer(ctx, a.user, a.lease, codes...) }
}
