package kubetest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

type faultKey struct{}

// changeResponse runs when the API server has answered, so a write is committed.
func changeResponse(response *http.Response) error {
	fault, _ := response.Request.Context().Value(faultKey{}).(Fault)
	if fault.Answered != nil {
		fault.Answered(response.StatusCode)
	}
	if sleep.For(response.Request.Context(), fault.ResponseDelay) != nil {
		return http.ErrAbortHandler
	}
	switch fault.Kind {
	case FaultDropResponse:
		return http.ErrAbortHandler
	case FaultReplaceResponse:
		response.StatusCode, response.Status = fault.Status, ""
		response.Header = statusHeader(fault)
		replaceBody(response, statusBody(fault))
	case FaultHalfBody:
		return halveBody(response)
	default:
	}
	return nil
}

// halveBody leaves out the length: with it the client would notice that something is missing before it looks
// at the content.
func halveBody(response *http.Response) error {
	whole, err := firstOf(response)
	if err != nil {
		return err
	}
	replaceBody(response, whole[:len(whole)/2])
	response.Header.Del("Content-Length")
	response.ContentLength = -1
	return nil
}

// firstOf reads the body, or of a stream what comes first.
func firstOf(response *http.Response) ([]byte, error) {
	if Verb(response.Request) != VerbWatch {
		return io.ReadAll(response.Body)
	}
	first := make([]byte, 64<<10)
	n, err := response.Body.Read(first)
	if n > 0 {
		err = nil // an end right behind it is no matter
	}
	return first[:n], err
}

func replaceBody(response *http.Response, body []byte) {
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

// writeStatus answers as the API server would, so that client libraries decode it.
func writeStatus(w http.ResponseWriter, fault Fault) {
	maps.Copy(w.Header(), statusHeader(fault))
	w.WriteHeader(fault.Status)
	_, _ = w.Write(statusBody(fault))
}

func statusHeader(fault Fault) http.Header {
	header := http.Header{"Content-Type": {"application/json"}}
	if fault.Foreign {
		header.Set("Content-Type", "text/plain")
	}
	if fault.RetryAfter != "" {
		header.Set("Retry-After", fault.RetryAfter)
	}
	return header
}

func statusBody(fault Fault) []byte {
	message := "kubetest: injected " + http.StatusText(fault.Status)
	if fault.Foreign {
		return []byte(message + "\n")
	}
	body, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": fault.Status, "message": message,
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	return body
}
