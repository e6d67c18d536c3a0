package lease

import (
	"fmt"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Validate reports what a store that keeps text would change on the way: a survivor whose name comes back different is no
// survivor. Such a record must be refused (ErrRefused), not written.
func (r *Record) Validate() error {
	if r.TTL < 0 {
		return fmt.Errorf("the time to live is negative: %s", r.TTL)
	}
	texts := []string{r.Holder, r.Nonce}
	if v := r.Verdict; v != nil {
		texts = append(texts, string(v.DecidedBy), v.Reason)
		for _, ids := range [][]sbr.ID{v.Survivors, v.Down} {
			for _, id := range ids {
				texts = append(texts, string(id))
			}
		}
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not valid UTF-8", text)
		}
	}
	return nil
}
