// Command install sees to it that there is a Chromium for the tests: it does nothing if there is one,
// installs it where it may (as root, with apt-get), and says what to do otherwise.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/serf-sbr/serf-sbr/test/browser"
)

var errByHand = errors.New("install the package chromium (or Google Chrome) by the means of this system, as root, or set " + browser.Env)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "make browser:", err)
		os.Exit(1)
	}
}

func run() error {
	if _, err := browser.Find(); err == nil || os.Getenv(browser.Env) != "" {
		return err // a caller that names a browser wants no other
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return errByHand
	}
	for _, args := range [][]string{{"update", "-q"},
		{"install", "-y", "-q", "--no-install-recommends", "chromium"}} {
		c := exec.Command(apt, args...)
		c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w: %w", c, err, errByHand)
		}
	}
	_, err = browser.Find()
	return err
}
