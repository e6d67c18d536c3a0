package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `sbr version -o json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// buildVersion reads what the Go toolchain wrote into the program; nothing has to be passed to the linker.
func buildVersion() versionInfo {
	v := versionInfo{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = cmp.Or(info.Main.Version, v.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// build tells programs apart whose runs may differ. The platform makes no difference.
func (v versionInfo) build() string {
	s := v.Version
	if v.Revision != "" {
		s += " " + v.Revision[:min(len(v.Revision), 12)]
	}
	if v.Modified {
		s += " (modified)"
	}
	return s
}

// line is what sbr version and sbr --version print.
func (v versionInfo) line() string { return "sbr " + v.build() + " " + v.Go + " " + v.Platform }

func newVersion(s streams) *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "print the version", Args: cobra.NoArgs}
	output := addFormat(c)
	c.RunE = verb(func() error {
		v := buildVersion()
		return s.outcome(*output, v, v.line(), nil)
	})
	return c
}
