package kubernetes

import "github.com/serf-sbr/serf-sbr/lease"

// Key is the name of this implementation in a configuration (lease-implementation). Importing the package makes it known to
// lease.Open.
const Key = "kubernetes"

func init() { lease.Register(Key, Factory(nil)) }
