package fence

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is a process to be killed when asked to be.
func TestMain(m *testing.M) {
	if path := os.Getenv(countVariable); path != "" {
		fmt.Fprintln(os.Stderr, count(path))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const countVariable = "FENCE_TEST_COUNT"

// count is a process that admits one token after the other and says each one that was admitted.
func count(path string) error {
	file, err := OpenFile(path)
	if err != nil {
		return err
	}
	f, err := Open(file)
	if err != nil {
		return err
	}
	for token := f.Newest() + 1; ; token++ {
		err := f.Do(context.Background(), token, func() error { _, err := fmt.Println(token); return err })
		if err != nil {
			return err
		}
	}
}
