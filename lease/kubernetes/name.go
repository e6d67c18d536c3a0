package kubernetes

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	maxName    = 63
	nameHash   = 8
	nameSuffix = "-sbr"
)

var nameEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Name returns the default name of a system's lease: "<system>-sbr", sanitised to at most 63 characters.
func Name(system string) string {
	name, err := SanitizeName(system+nameSuffix, maxName, nameHash)
	if err != nil {
		// The suffix alone is a name.
		panic(err)
	}
	return name
}

// LeaseName returns what the lease called lease-name is called in Kubernetes: the same, sanitised, or Name(system) if it is empty.
func LeaseName(system, leaseName string) (string, error) {
	if leaseName == "" {
		return Name(system), nil
	}
	name, err := SanitizeName(leaseName, maxName, nameHash)
	if err != nil {
		return "", fmt.Errorf("lease-name: %w", err)
	}
	return name, nil
}

// SanitizeName turns any text into a name that Kubernetes takes: decomposed (NFKD), in lower case, with "-" for "_" and ".", and
// without everything else but letters, digits and inner hyphens. What is longer than maxLen is cut and, so that two long names stay
// two, ends in the first hashLen characters of a hash of the original; hashLen 0 only cuts. It is an error if nothing is left.
// Short names that differ only in what is replaced or dropped do become equal: "a.b" and "a-b".
func SanitizeName(name string, maxLen, hashLen int) (string, error) {
	if maxLen < 1 || hashLen < 0 {
		return "", fmt.Errorf("kubernetes: name of at most %d characters with %d of a hash: must be at least 1 and 0", maxLen, hashLen)
	}
	clean := strings.Map(nameRune, strings.ToLower(norm.NFKD.String(name)))
	if len(clean) > maxLen {
		clean = shorten(clean, name, maxLen, hashLen)
	}
	clean = strings.Trim(clean, "-")
	if clean == "" {
		return "", fmt.Errorf("kubernetes: nothing of the name %q is allowed in the name of a lease: it needs at least one letter a-z or digit", name)
	}
	return clean, nil
}

func nameRune(r rune) rune {
	switch {
	case r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z':
		return r
	case r == '_' || r == '.':
		return '-'
	default:
		return -1
	}
}

// shorten hashes the original rather than the clean text: names that differ only in what was dropped stay apart.
func shorten(clean, original string, maxLen, hashLen int) string {
	if hashLen == 0 {
		return clean[:maxLen]
	}
	sum := sha256.Sum256([]byte(original))
	hash := nameEncoding.EncodeToString(sum[:])
	hash = hash[:min(hashLen, len(hash))]
	if len(hash) >= maxLen-1 {
		return hash[:min(len(hash), maxLen)]
	}
	return strings.Trim(clean[:maxLen-len(hash)-1], "-") + "-" + hash
}
