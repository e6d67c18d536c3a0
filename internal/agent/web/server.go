package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/serf-sbr/serf-sbr/internal/config"
)

// What one client may take.
const (
	maxConns      = 128
	maxHeader     = 16 << 10
	headerTime    = 5 * time.Second
	requestTime   = 10 * time.Second
	answerTime    = 30 * time.Second
	idleTime      = time.Minute
	shutdownGrace = 2 * time.Second
)

// Server is a listener and what it serves. Make one with New.
type Server struct {
	log    *slog.Logger
	ln     net.Listener
	http   *http.Server
	tls    *certificate // nil: plain HTTP
	feed   *feed
	ending chan struct{}
	end    sync.Once
}

// New listens, and serves nothing yet. It fails when the address cannot be had, or the certificate or the
// token cannot be read; each error is for an operator and says what to do. It warns of settings that open the
// page to unintended readers.
func New(o Options) (*Server, error) {
	o.Logger = cmp.Or(o.Logger, slog.Default())
	s := &Server{log: o.Logger, feed: newFeed(o.Source), ending: make(chan struct{})}
	var guard *token
	if o.TokenFile != "" {
		guard = &token{path: o.TokenFile, log: o.Logger}
		if _, err := guard.read(); err != nil {
			return nil, err
		}
	}
	if o.TLSCert != "" {
		s.tls = &certificate{certFile: o.TLSCert, keyFile: o.TLSKey, log: o.Logger}
		if err := s.tls.load(); err != nil {
			return nil, err
		}
	}
	ln, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, listenError(o.Listen, err)
	}
	s.ln = netutil.LimitListener(ln, maxConns)
	loopback := isLoopback(ln.Addr())
	if !loopback {
		h := config.HTTP{TokenFile: o.TokenFile, TLSCertFile: o.TLSCert}
		for _, w := range h.Exposes() {
			s.log.Warn("sbr: "+w.Text, "listen", s.Addr().String())
		}
	}
	s.http = &http.Server{
		Handler:           s.handler(&o, guard, loopback),
		ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func listenError(address string, err error) error {
	way := "set http.listen to an address of this machine"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		way = "stop what listens there, or set http.listen to another address"
	case errors.Is(err, syscall.EACCES):
		way = "set http.listen to a port above 1023"
	}
	return fmt.Errorf("http: cannot listen on %s: %w: %s", address, err, way)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Addr is the address that is listened on, with the port that was taken for port 0.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Serve serves until ctx ends or Shutdown is called, and returns nil then. It returns an error when the
// listener breaks. Call it once.
func (s *Server) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() {
		if s.tls == nil {
			failed <- s.http.Serve(s.ln)
			return
		}
		s.http.TLSConfig = s.tls.config()
		failed <- s.http.ServeTLS(s.ln, "", "")
	}()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		_ = s.Shutdown(bound) // the rest was cut off: nothing waits for a client that does not read
		err = <-failed
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("http: %s is no longer served: %w", s.Addr(), err)
}

// Shutdown ends the server: feeds get the last state, requests that run may finish until ctx ends, then they
// are cut off and the error is that of ctx. It also ends a server that never served.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end.Do(func() { close(s.ending) })
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close() // it closes what Shutdown has given up
	}
	_ = s.ln.Close() // closed already if it was served
	return err
}

// Options are what New needs: all but TLSCert, TLSKey, TokenFile and Logger.
type Options struct {
	// Listen is host:port. Port 0 takes a free one, an empty host every address of the machine.
	Listen string
	// TLSCert and TLSKey are PEM files: both or none. They are read again when they change.
	TLSCert, TLSKey string
	// TokenFile holds the token that every request but those for the health must bring. It is read anew for
	// each request. Empty: no token is needed.
	TokenFile string
	// Source is what is shown.
	Source Source
	// Metrics answers /metrics, Programs the POST requests at /run.
	Metrics, Programs http.Handler
	// Down downs a member at POST /down: Provider.Down. Beyond the loopback it wants a token.
	Down func(ctx context.Context, member, reason string) error
	// Logger takes what an operator should know. Nil: slog.Default.
	Logger *slog.Logger
}
