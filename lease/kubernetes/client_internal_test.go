package kubernetes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A stream that opens in the very moment in which its time is over is no stream: its request ends with the timer's function, which
// may not have run yet.
func TestWatch_OpenedTooLate(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		err, cause, want error
		inTime           bool
	}{
		"in time":                               {inTime: true},
		"failed in time":                        {err: refused, want: refused, inTime: true},
		"too late, the context knows":           {cause: errOpenTimeout, want: errOpenTimeout},
		"too late, the context does not know":   {want: errOpenTimeout},
		"too late, the watch had been given up": {cause: context.Canceled, want: errOpenTimeout},
		"failed because it was too late":        {err: context.Canceled, cause: errOpenTimeout, want: errOpenTimeout},
		"failed, and the time was over as well": {err: refused, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			got := notOpened(c.err, c.inTime, c.cause, time.Second)
			if c.want == nil {
				require.NoError(t, got)
				return
			}
			require.ErrorIs(t, got, c.want)
		})
	}
}
