package lease

import (
	"fmt"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// spent refuses a token beyond MaxToken, which no store and no fence has to keep: the record was poisoned.
func (r *Record) spent() error {
	if t := highest(r); t > MaxToken {
		return fmt.Errorf("%w: it is %d, and the largest is %d: see sbr lease reset", ErrTokenSpent, t, MaxToken)
	}
	return nil
}

// Validate reports what a store that keeps text would change on the way: a survivor whose name comes back different is no
// survivor. Such a record must be refused (ErrRefused), not written.
func (r *Record) Validate() error {
	if r.TTL < 0 {
		return fmt.Errorf("the time to live is negative: %s", r.TTL)
	}
	if err := r.spent(); err != nil {
		return err
	}
	texts := []string{r.Holder, r.Nonce}
	if v := r.Verdict; v != nil {
		texts = append(texts, string(v.DecidedBy), v.Reason)
		for _, ids := range [][]sbr.ID{v.Survivors, v.Down, v.Left, v.Heirs} {
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
