// Command serve runs a ledger as a process of its own.
//
//	serve --file PATH [--listen 127.0.0.1:0]
//
// It prints "listening on HOST:PORT" as its first line and ends with status 0 at INT or TERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 for what went wrong, 2 for a wrong command line.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(messages)
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on; port 0 is a free one")
	file := flags.String("file", "", "file to append to; it must be new or empty (required)")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *file == "" || flags.NArg() > 0 {
		flags.Usage()
		return 2
	}
	if err := serve(ctx, *listen, *file, out); err != nil {
		fmt.Fprintln(messages, "serve:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, address, file string, out io.Writer) error {
	l, err := ledger.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	// Without time-outs: tests want to see what becomes of a writer that was paused in the middle of its
	// request.
	server := &http.Server{Handler: l}
	unhook := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer unhook()
	fmt.Fprintln(out, "listening on", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
