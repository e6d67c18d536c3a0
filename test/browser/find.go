package browser

import (
	"fmt"
	"os"
	"os/exec"
)

// Env names the variable with the browser to use, by name or path.
const Env = "SBR_BROWSER"

// candidates are what distributions call it.
var candidates = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of a Chromium. The error is one line with the way out.
func Find() (string, error) {
	if name := os.Getenv(Env); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("browser: %s=%s: %w: correct or unset it", Env, name, err)
		}
		return path, nil
	}
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("browser: no Chromium in PATH: run make browser, or set %s", Env)
}
