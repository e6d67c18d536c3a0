// Command ferretdb is the server of the tests of lease/mongodb: FerretDB, which speaks MongoDB's wire
// protocol, over SQLite or a database of PostgreSQL.
//
//	ferretdb -listen 127.0.0.1:27017 -data FOLDER [-postgres URL]
//
// A MongoDB server updates one document atomically. FerretDB does not: it reads what matches, then writes,
// and two clients can do so at the same time. So this program lets one command through at a time.
//
// What it cannot show: read and write concerns (it ignores them), change streams (it has none), replica
// sets and elections, users.
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:27017", "address to listen on")
	data := flag.String("data", "", "folder of the data")
	postgres := flag.String("postgres", "", "URL of a database that keeps the data; empty: SQLite does")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, *listen, *data, *postgres); err != nil {
		log.Fatal("ferretdb: ", err)
	}
}

func run(ctx context.Context, listen, data, postgres string) error {
	inner := filepath.Join(data, "ferretdb.sock")
	_ = os.Remove(inner) // of a killed process
	// Tests kill the process, not the machine: nothing has to wait for the disk.
	config := &ferretdb.Config{
		Listener: ferretdb.ListenerConfig{Unix: inner},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:  "sqlite", SQLiteURL: "file:" + data + "/?_pragma=synchronous(off)",
	}
	if postgres != "" {
		config.Handler, config.PostgreSQLURL = "postgresql", postgres
	}
	server, err := ferretdb.New(config)
	if err != nil {
		return err
	}
	front, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = front.Close() })
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	turn := &sync.Mutex{}
	for {
		client, err := front.Accept()
		if err != nil {
			return <-ended
		}
		go serve(client, inner, turn)
	}
}

// serve passes on one command after the other, and its answer.
func serve(client net.Conn, inner string, turn *sync.Mutex) {
	defer client.Close()
	server, err := net.Dial("unix", inner)
	if err != nil {
		return
	}
	defer server.Close()
	for {
		command, err := message(client)
		if err != nil {
			return
		}
		answer, err := exchange(server, command, turn)
		if err != nil {
			return
		}
		if _, err := client.Write(answer); err != nil {
			return
		}
	}
}

func exchange(server net.Conn, command []byte, turn *sync.Mutex) ([]byte, error) {
	turn.Lock()
	defer turn.Unlock()
	if _, err := server.Write(command); err != nil {
		return nil, err
	}
	return message(server)
}

// message is one of the wire protocol: its length, in four bytes that count as well, and the rest.
func message(from io.Reader) ([]byte, error) {
	const most = 48 << 20 // what the protocol allows, rounded up
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length < uint32(len(head)) || length > most {
		return nil, io.ErrUnexpectedEOF
	}
	whole := make([]byte, length)
	copy(whole, head[:])
	_, err := io.ReadFull(from, whole[len(head):])
	return whole, err
}
