package kubetest

// EtcdIsPaused reports whether etcd stands still: a test that measures a pause can see whether anybody has ended it meanwhile.
func (c *Cluster) EtcdIsPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etcd.alive() && c.etcd.Paused()
}
