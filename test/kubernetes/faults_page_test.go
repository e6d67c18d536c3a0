package kubernetes_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/faults"
)

var update = flag.Bool("update", false, "write docs/faults.md")

const faultPageHead = `# Faults of a store

What may come of each fault at each request of a lease. Each cell is played against a real server: ` + "`go test -C test ./kubernetes ./etcd\n" +
	"./postgres ./mongodb -run TestFaultMatrix`" + `. All the time a guard looks whether two hold the lease (S3), and what the lease said is compared with
what an independent client reads right then (S4). This page is written from the tables that those tests compare with, by
` + "`go test -C test ./kubernetes -run TestFaultPage -update`" + `.

A is struck: its requests pass a proxy. Before an acquire the record is free under token 1, or absent where A is to create it; before a
heartbeat or a release A holds it under token 2; a watch begins with B holding, and B takes it again while the fault lasts. A cell is what A was
told, and what the record holds then: its holder, or free, and its token. "Refused" is an error that says for certain that nothing was written.

MongoDB's protocol is FerretDB's, which has no change streams: its watch is a poll. It has no users here, and its disk is
not filled. PostgreSQL's is that of the table alone, which root can mount: a server that has no space for its log ends.

| fault | store | read | create | update | heartbeat | release | watch |
|---|---|---|---|---|---|---|---|
`

// TestFaultPage: the page for people is what the tables say, those of all stores in one.
func TestFaultPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(faultPageHead)
	for _, r := range append(faultTable(), disasters(nil, nil)...) {
		faults.WriteRow(&b, r.fault.name+", "+r.fault.lasts, "Kubernetes", r.want[:])
	}
	b.WriteString(faults.Page())
	page := filepath.Join("..", "..", "docs", "faults.md")
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	present, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(present), "run this test with -update")
}
