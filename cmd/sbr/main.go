package main

import (
	"os"
	"runtime/debug"
)

func main() {
	abortOnPanic()
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// abortOnPanic makes a panic end the program by SIGABRT. Go's own status for it is 2, which says here that
// the configuration is wrong: after that service managers do not start the program again. Serf and memberlist
// have goroutines in which nobody can recover.
func abortOnPanic() { debug.SetTraceback("crash") }
