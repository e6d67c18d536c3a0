package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
)

// Options are what New needs. Listen and Source are required.
type Options struct {
	// Listen is host:port. Port 0 takes a free one, an empty host every address of the machine.
	Listen string
	// TLSCert and TLSKey are PEM files: both or none. They are read again when they change.
	TLSCert, TLSKey string
	// TokenFile holds the token that every request but those for the health must bring. It is read anew for each request. Empty: everybody is let in.
	TokenFile string
	// Source is what is shown.
	Source Source
	// Metrics answers /metrics. Nil: there is no such path.
	Metrics http.Handler
	// Programs takes POST requests at /run, and Singletons answers /singletons. Nil: there is no such path.
	Programs, Singletons http.Handler
	// Down downs a member at POST /down: Provider.Down. Beyond the loopback it wants a token. Nil: there is no such path.
	Down func(ctx context.Context, member, reason string) error
	// Logger is told what an operator should know. Nil: slog.Default.
	Logger *slog.Logger
}

// Validate returns everything that is wrong, in one error. It opens nothing.
func (o *Options) Validate() error {
	var errs []error
	if _, port, err := net.SplitHostPort(o.Listen); err != nil {
		errs = append(errs, fmt.Errorf("http listen: %q is not host:port: use for instance 127.0.0.1:7380", o.Listen))
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		errs = append(errs, fmt.Errorf("http listen: %q is no port: use a number up to 65535", port))
	}
	if (o.TLSCert == "") != (o.TLSKey == "") {
		errs = append(errs, errors.New("http tls: a certificate and its key belong together: set tls-cert-file and tls-key-file, or neither"))
	}
	if o.Source == nil {
		errs = append(errs, errors.New("http: nothing to show: set Source"))
	}
	return errors.Join(errs...)
}
