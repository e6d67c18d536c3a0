package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease/fence"
)

// DefaultEvery is the time between two entries of a Writer.
const DefaultEvery = 10 * time.Millisecond

// patience bounds one attempt, so that a partitioned writer goes on trying.
const patience = time.Second

// Client speaks to a Server.
type Client struct {
	// URL of the server, without a path.
	URL string
	// HTTP sends the requests. Nil: http.DefaultClient.
	HTTP *http.Client
}

// Append sends one entry. The error wraps fence.ErrStale if the fence refused it. After any other error it
// may have been written.
func (c Client) Append(ctx context.Context, token uint64, e Entry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.path("/append"), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	fence.Set(r, token)
	resp, err := c.do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	// to its end, so that the connection can be used again
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxEntry))
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return nil
	case fence.FromResponse(resp) != nil:
		return fence.FromResponse(resp)
	case err != nil:
		return fmt.Errorf("ledger: %s: %w", resp.Status, err)
	default:
		return fmt.Errorf("ledger: %s: %s", resp.Status, bytes.TrimSpace(said))
	}
}

// Lines returns what the server has written so far.
func (c Client) Lines(ctx context.Context) ([]Line, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.path("/log"), nil)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	resp, err := c.do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ledger: %s", resp.Status)
	}
	return Read(resp.Body)
}

func (c Client) path(p string) string { return strings.TrimSuffix(c.URL, "/") + p }

func (c Client) do(r *http.Request) (*http.Response, error) {
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return resp, nil
}

// Writer is a run that works: it writes all the time, and goes on when it is refused, because what is
// measured is who tries.
type Writer struct {
	Client Client
	// Entry says who writes to what; Seq and Kind are the Writer's own.
	Entry Entry
	// Token of the run.
	Token uint64
	// Every is the time between two entries. Zero: DefaultEvery.
	Every time.Duration
	// Check is asked before each pause, after which an entry is written: the pause is the work that takes its
	// time between the look and the write. The run ends when it returns an error. Nil: only the end of its
	// context ends a run.
	Check func() error
}

// Stats counts the attempts of a run.
type Stats struct {
	Accepted, Refused int
	// Failed is how many got no answer in time, or another one. Last is the newest error of those.
	Failed int
	Last   error
}

// Run writes a start, work every so often until ctx ends or Check says no, and a stop. An entry that fails is
// not repeated: the next one follows. The stop is sent after the end of ctx and bounded by a second.
func (w Writer) Run(ctx context.Context) Stats {
	every := w.Every
	if every == 0 {
		every = DefaultEvery
	}
	w.Entry.Seq = 0
	var stats Stats
	w.send(ctx, Start, &stats)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil && (w.Check == nil || w.Check() == nil) {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if ctx.Err() == nil {
				w.send(ctx, Work, &stats)
			}
		}
	}
	w.send(ctx, Stop, &stats)
	return stats
}

func (w *Writer) send(ctx context.Context, kind Kind, stats *Stats) {
	w.Entry.Seq++
	e := w.Entry
	e.Kind = kind
	// The end of the run breaks off no attempt that is under way: nobody would know what became of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := w.Client.Append(ctx, w.Token, e)
	switch {
	case err == nil:
		stats.Accepted++
	case errors.Is(err, fence.ErrStale):
		stats.Refused++
	default:
		stats.Failed++
		stats.Last = err
	}
}
