package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease/fence"
)

const maxEntry = 16 << 10

// Server is the resource: POST /append takes an Entry and a token in the header, GET /log returns the lines.
// It is an http.Handler.
type Server struct {
	mux   *http.ServeMux
	begun time.Time

	fencing sync.Mutex
	fences  map[string]*fence.Fence

	// writing is taken inside of a fence, never the other way round.
	writing sync.Mutex
	file    *os.File
	size    int64
	last    time.Duration
	failed  error
}

// Open makes the file, which must be new or empty, and returns a server that appends to it. Close closes it.
func Open(path string) (*Server, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	info, err := file.Stat()
	if err == nil && info.Size() != 0 {
		err = fmt.Errorf("%s is not empty: give it a new file, its times and tokens begin anew", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("ledger: %w", err)
	}
	s := &Server{mux: http.NewServeMux(), begun: time.Now(), fences: map[string]*fence.Fence{}, file: file}
	s.mux.HandleFunc("POST /append", s.append)
	s.mux.HandleFunc("GET /log", s.log)
	return s, nil
}

// Close closes the file; what comes later is answered with an error.
func (s *Server) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.failed == nil {
		s.failed = os.ErrClosed
	}
	return s.file.Close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) append(w http.ResponseWriter, r *http.Request) {
	token, err := fence.FromRequest(r)
	if err != nil {
		fence.Error(w, err)
		return
	}
	entry, err := decode(http.MaxBytesReader(w, r.Body, maxEntry))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.decide(r.Context(), token, entry); err != nil {
		fence.Error(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func decode(r io.Reader) (e Entry, err error) {
	in := json.NewDecoder(r)
	in.DisallowUnknownFields()
	if err := in.Decode(&e); err != nil {
		return e, fmt.Errorf("ledger: want an entry in JSON: %w", err)
	}
	return e, e.Validate()
}

// decide writes the line of one attempt and returns nil if it was accepted.
func (s *Server) decide(ctx context.Context, token uint64, e Entry) error {
	accept := func() error { return s.write(Line{Token: token, Accepted: true, Entry: e}) }
	err := s.fence(e.Resource).Do(ctx, token, accept)
	if errors.Is(err, fence.ErrStale) {
		if failed := s.write(Line{Token: token, Entry: e}); failed != nil {
			return failed
		}
	}
	return err
}

func (s *Server) fence(resource string) *fence.Fence {
	s.fencing.Lock()
	defer s.fencing.Unlock()
	f := s.fences[resource]
	if f == nil {
		f = fence.New()
		s.fences[resource] = f
	}
	return f
}

// write appends a line and gives it its time. After an error the end of the file is unknown, so nothing is
// written any more.
func (s *Server) write(l Line) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.failed != nil {
		return fmt.Errorf("ledger: %w", s.failed)
	}
	l.At = max(time.Since(s.begun), s.last+1)
	text, err := json.Marshal(l)
	if err == nil {
		_, err = s.file.Write(append(text, '\n'))
	}
	if err != nil {
		s.failed = err
		return fmt.Errorf("ledger: %w", err)
	}
	s.last = l.At
	s.size += int64(len(text)) + 1
	return nil
}

func (s *Server) log(w http.ResponseWriter, _ *http.Request) {
	lines, err := s.written()
	if err != nil {
		fence.Error(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Length", fmt.Sprint(lines.Size()))
	_, _ = io.Copy(w, lines) // a client that has gone does not mind
}

// written returns the lines up to now.
func (s *Server) written() (*io.SectionReader, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.failed != nil {
		return nil, fmt.Errorf("ledger: %w", s.failed)
	}
	return io.NewSectionReader(s.file, 0, s.size), nil
}
