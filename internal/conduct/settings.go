package conduct

import (
	"errors"
	"fmt"
	"time"
)

// Setting is a duration of a configuration.
type Setting struct {
	Key     string
	Value   *time.Duration
	Default time.Duration
}

// Fill gives those that are zero their defaults.
func Fill(settings []Setting) {
	for _, s := range settings {
		if *s.Value == 0 {
			*s.Value = s.Default
		}
	}
}

// NotNegative reports every one that is.
func NotNegative(of string, settings []Setting) error {
	var errs []error
	for _, s := range settings {
		if *s.Value < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is %v: it must not be negative", of, s.Key, *s.Value))
		}
	}
	return errors.Join(errs...)
}

// Closed reports whether a channel is closed, on which nothing is ever sent.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
