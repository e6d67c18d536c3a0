// Package secret reads the passwords and addresses with passwords that a configuration names.
package secret

import (
	"fmt"
	"os"
	"strings"
)

// Of returns a value that must be neither on a command line nor in an error: the one under key in a
// configuration, or that in the file under <key>-file, or that of a variable of the environment.
func Of(key, value, file, variable string) (string, error) {
	switch {
	case value != "" && file != "":
		return "", fmt.Errorf("both %s and %[1]s-file are set: leave one out", key)
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s-file: %w", key, err)
		}
		value = strings.TrimRight(string(text), "\r\n")
	case value == "":
		value = os.Getenv(variable)
	}
	if value == "" {
		return "", fmt.Errorf("set %s-file or $%s", key, variable)
	}
	return value, nil
}
