package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/sbr"
)

const statusHelp = `Status asks a running sbr agent how it is: what its member sees, who leads, when it decides, who holds the lease, the last verdict.
With -o json it prints the agent's answer as it came.

With --watch it asks every second: on a terminal it draws the answer anew, elsewhere it prints one line (or one JSON object) for each change.
An agent that stops answering meanwhile is asked again.
` + agentHelp + `

Exit statuses: 0 an agent answered; 1 none did; 2 bad usage; 3 with --check: an agent answered, but its member is not up.`

const statusExample = `  sbr status
  sbr status -f sbr.yaml --check
  sbr status --url https://n1.example.com:7380 --ca-file ca.pem --token-file token -o json
  sbr status --watch`

func newStatus(s streams) *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "ask a running agent how it is", Long: statusHelp, Example: statusExample, Args: cobra.NoArgs}
	flags, watching, output := addAgent(c), addWatch(c), addFormat(c)
	check := c.Flags().Bool("check", false, "exit status 3 unless the state is up")
	c.MarkFlagsMutuallyExclusive("check", "watch")
	c.RunE = verb(func() error {
		client, err := flags.client()
		if err != nil {
			return err
		}
		if watching.on() {
			return watching.run(c.Context(), s, client, statusView, *output)
		}
		a, err := client.status(c.Context())
		if err != nil {
			return err
		}
		if err := statusView.write(s.out, a, *output); err != nil {
			return err
		}
		if *check && a.State != sbr.StateUp {
			return held{fmt.Errorf("%s is %s, not up", clean(a.Member), clean(string(a.State)))}
		}
		return nil
	})
	return c
}

// agentView is one way to show an answer.
type agentView struct {
	text func(*agentAnswer, painter) string
	line func(*agentAnswer) string          // for --watch
	json func(*agentAnswer) ([]byte, error) // one object, in any layout
}

var statusView = agentView{
	text: statusText,
	line: statusLine,
	json: func(a *agentAnswer) ([]byte, error) { return a.raw, nil },
}

// write shows one answer.
func (v agentView) write(to io.Writer, a *agentAnswer, output format) error {
	if output != formatJSON {
		_, err := io.WriteString(to, v.text(a, paint(to)))
		return err
	}
	data, err := v.json(a)
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(bytes.Clone(data), '\n')
	}
	_, err = to.Write(data)
	return err
}

// change is what --watch prints without a terminal: one line.
func (v agentView) change(a *agentAnswer, output format) (string, error) {
	if output != formatJSON {
		return v.line(a), nil
	}
	data, err := v.json(a)
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return "", errors.Join(errors.New("the answer is not JSON"), err)
	}
	return compact.String(), nil
}
