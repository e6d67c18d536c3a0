//go:build linux

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const (
	// LedgerHost is where a ledger runs.
	LedgerHost = "ledger"
	ledgerPort = 7000
	// marks is the resource of Mark.
	marks = "marks"
	// look is how often a ledger's file is looked at.
	lookEvery = 10 * time.Millisecond
	// ledgerStart bounds the start of a ledger.
	ledgerStart = 30 * time.Second
)

// Ledger is the resource that singletons write to, on a host of its own (see package ledger). Its methods may
// be called from several goroutines.
type Ledger struct {
	host   *lab.Host
	client ledger.Client
	path   string

	mu    sync.Mutex
	file  *os.File
	rest  []byte
	lines []ledger.Line
	marks uint64
}

// StartLedger adds a host with a ledger; program is internal/ledger/serve. It ends with the lab; Close closes
// the file.
func StartLedger(ctx context.Context, l *lab.Lab, program string) (*Ledger, error) {
	h, err := l.AddHost(ctx, LedgerHost)
	if err != nil {
		return nil, err
	}
	d := &Ledger{host: h, path: h.File("lines.jsonl")}
	d.client = ledger.Client{URL: "http://" + h.At(ledgerPort), HTTP: h.Client()}
	p, err := h.Start(process.Command{Name: "serve", Program: program,
		Args: []string{"--listen", h.At(ledgerPort), "--file", d.path}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerStart)
	defer cancel()
	err = await(ctx, func() error {
		if !strings.Contains(p.Log(), "listening on") {
			return fmt.Errorf("cluster: the ledger does not listen: %s", p.Log())
		}
		return nil
	})
	if err == nil {
		d.file, err = os.Open(d.path)
	}
	return d, err
}

// URL is where the ledger is written to.
func (d *Ledger) URL() string { return d.client.URL }

// Close closes the file.
func (d *Ledger) Close() error { return d.file.Close() }

// Mark writes a line that says what happens now, and returns its time by the ledger's clock.
func (d *Ledger) Mark(ctx context.Context, what string) (time.Duration, error) {
	d.mu.Lock()
	d.marks++
	e := ledger.Entry{Resource: marks, Member: what, Run: "mark", Seq: d.marks, Kind: ledger.Work}
	d.mu.Unlock()
	if err := d.client.Append(ctx, 1, e); err != nil {
		return 0, err
	}
	all, err := d.read()
	if err != nil {
		return 0, err
	}
	for _, l := range slices.Backward(all) {
		if l.Entry == e {
			return l.At, nil
		}
	}
	return 0, fmt.Errorf("cluster: the ledger has no line for %q", what)
}

// Lines are what was written to a resource so far.
func (d *Ledger) Lines(resource string) ([]ledger.Line, error) {
	all, err := d.read()
	return slices.DeleteFunc(slices.Clone(all), func(l ledger.Line) bool { return l.Resource != resource }), err
}

// read takes in what was added to the file. What is returned is only appended to.
func (d *Ledger) read() ([]ledger.Line, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	added, err := io.ReadAll(d.file)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	d.rest = append(d.rest, added...)
	end := bytes.LastIndexByte(d.rest, '\n') + 1
	lines, err := ledger.Read(bytes.NewReader(d.rest[:end]))
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	d.lines, d.rest = append(d.lines, lines...), bytes.Clone(d.rest[end:])
	return slices.Clip(d.lines), nil
}

// Find waits for the first line of a resource later than after that is wanted.
func (d *Ledger) Find(ctx context.Context, resource string, after time.Duration,
	want func(ledger.Line) bool) (ledger.Line, error) {
	for {
		all, err := d.read()
		if err != nil {
			return ledger.Line{}, err
		}
		first, _ := slices.BinarySearchFunc(all, after+1, func(l ledger.Line, at time.Duration) int {
			return int(l.At - at)
		})
		for _, l := range all[first:] {
			if l.Resource == resource && want(l) {
				return l, nil
			}
		}
		if err := sleep.For(ctx, lookEvery); err != nil {
			return ledger.Line{}, fmt.Errorf("cluster: nothing of what is waited for was written to %s: %w",
				resource, err)
		}
	}
}

// Work waits for accepted work later than after; who is a member, or empty for any.
func (d *Ledger) Work(ctx context.Context, resource string, after time.Duration, who string) (
	ledger.Line, error) {
	return d.Find(ctx, resource, after, func(l ledger.Line) bool {
		return l.Accepted && l.Kind == ledger.Work && (who == "" || l.Member == who)
	})
}
