package config

import (
	"fmt"
	"io"
	"os"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// maxBytes is the largest configuration that is read.
const maxBytes = 1 << 20

// Load reads and validates the file at path.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return Parse(path, data)
}

// Parse decodes data over Default and validates the result. The error is strictyaml.Problems; name stands in
// front of each.
func Parse(name string, data []byte) (*File, error) {
	f := Default()
	lines := make(map[string]int)
	err := strictyaml.Decode(data, &f, strictyaml.Options{Name: name, MaxBytes: maxBytes, Lines: lines})
	if err != nil {
		return nil, err
	}
	f.name = name
	_, f.leaseNamed = lines[implementationKey]
	if err := f.problems().Locate(name, lines).Err(); err != nil {
		return nil, err
	}
	return &f, nil
}
