//go:build !linux

package deploy_test

import "testing"

func emptyRoot(t *testing.T, _ string) { t.Skip("needs Linux: chroot") }
