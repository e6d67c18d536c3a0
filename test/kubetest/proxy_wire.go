package kubetest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// wire is a client's connection below TLS, so that a cut is a cut and not a polite goodbye.
type wire struct {
	*net.TCPConn
	frozen atomic.Bool
}

type wireListener struct{ net.Listener }

func (l wireListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &wire{TCPConn: conn.(*net.TCPConn)}, nil
}

// Read of a frozen wire swallows what comes, and returns when the client or the proxy closes it.
func (w *wire) Read(into []byte) (int, error) {
	n, err := w.TCPConn.Read(into)
	for err == nil && w.frozen.Load() {
		_, err = w.TCPConn.Read(into)
		n = 0
	}
	return n, err
}

// Write of a frozen wire pretends: the server must not notice either.
func (w *wire) Write(from []byte) (int, error) {
	if w.frozen.Load() {
		return len(from), nil
	}
	return w.TCPConn.Write(from)
}

// ReadFrom keeps the one of the connection, which knows nothing of freezing, out of sight.
func (w *wire) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

// WriteTo does the same for the other direction.
func (w *wire) WriteTo(to io.Writer) (int64, error) {
	return io.Copy(to, struct{ io.Reader }{w})
}

// cut ends the wire, or leaves it to the client and to the end of the proxy to do so.
func (w *wire) cut(how Cut) {
	switch how {
	case CutFreeze:
		w.frozen.Store(true)
	case CutReset:
		_ = w.SetLinger(0)
		_ = w.TCPConn.Close()
	default:
		_ = w.TCPConn.Close()
	}
}

type wireKey struct{}

func rememberWire(ctx context.Context, conn net.Conn) context.Context {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return context.WithValue(ctx, wireKey{}, conn.(*wire))
}

func wireOf(r *http.Request) *wire { return r.Context().Value(wireKey{}).(*wire) }

// fate is what becomes of a request's connection if its handler aborts.
type fate struct{ cut Cut }

type fateKey struct{}

func fateOf(r *http.Request) *fate { return r.Context().Value(fateKey{}).(*fate) }

// cutOnAbort turns an aborted handler into a connection that ends, as a client sees it when the server dies.
// On its own an abort resets only the one HTTP/2 stream.
func cutOnAbort(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), fateKey{}, &fate{}))
		defer func() {
			problem := recover()
			if problem == nil {
				return
			}
			// A client that gave up on this request may have others on the connection.
			if r.Context().Err() == nil {
				wireOf(r).cut(fateOf(r).cut)
			}
			panic(problem)
		}()
		next.ServeHTTP(w, r)
	})
}
