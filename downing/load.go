package downing

import "github.com/serf-sbr/serf-sbr/internal/config"

// LoadConfig reads an sbr.yaml. It is strict: unknown keys and impossible values are errors that name the key and its line, all
// of them at once. The lease is opened by the implementation that the file names: import its package (lease/kubernetes, lease/file), or set Store.
func LoadConfig(path string) (Config, error) {
	f, err := config.Load(path)
	if err != nil {
		return Config{}, err
	}
	return fromFile(f), nil
}

// ParseConfig is LoadConfig for a file that was read already; name is what errors call it.
func ParseConfig(name string, data []byte) (Config, error) {
	f, err := config.Parse(name, data)
	if err != nil {
		return Config{}, err
	}
	return fromFile(f), nil
}

func fromFile(f *config.File) Config {
	r := &f.SplitBrainResolver
	c := DefaultConfig()
	c.System, c.Provider = f.System, f.DowningProvider
	c.Strategy, c.Strategies = r.ActiveStrategy, r.Settings()
	c.Resolver = f.Resolver()
	c.Probe = r.Reachability()
	c.Lease = f.LeaseSettings(r.LeaseMajority.LeaseImplementation)
	c.LeaseName = f.LeaseName()
	c.LeaseImplementation = r.LeaseMajority.LeaseImplementation
	c.LeaseDecode = f.LeaseBlock(c.LeaseImplementation)
	c.ConfigDigest = f.Digest()
	return c
}
