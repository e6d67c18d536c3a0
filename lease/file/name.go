package file

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

const (
	nameSuffix = "-sbr"
	extension  = ".lease"
	// maxName leaves room for the extension, the lock file's and the temporary file's in the 255 bytes that file systems allow.
	maxName  = 100
	nameHash = 13 // characters, 65 bits
)

var nameEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Name returns the default name of a system's lease: "<system>-sbr".
func Name(system string) string { return system + nameSuffix }

// SanitizeName turns any text into the name of a file, the same on every file system: lower-case letters a-z, digits, and inner
// hyphens, underscores and dots, at most 100 of them. Whatever else there was becomes a hyphen. A name that had to be changed ends
// in a hash of the original, so that two names stay two: "Orders" and "orders" are not one lease.
func SanitizeName(name string) string {
	clean := strings.Trim(strings.Map(nameRune, strings.ToLower(name)), "-_.")
	if clean == name && name != "" && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := nameEncoding.EncodeToString(sum[:])[:nameHash]
	clean = strings.Trim(clean[:min(len(clean), maxName-nameHash-1)], "-_.")
	if clean == "" {
		return hash
	}
	return clean + "-" + hash
}

func nameRune(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
		return r
	default:
		return '-'
	}
}
