// Package deploytest builds the programs that check what is in deploy/ and packs what is released: kustomize, promtool, goreleaser and syft,
// each in the version that a module under test/deploy pins, into a cache in .cache/deploy.
//
// # Guarantees
//
//   - A program is built once for each version and Go toolchain; a build that fails leaves nothing behind.
//   - The programs never touch the product's module.
//
// # Non-guarantees
//
//   - Speed of the first build: with nothing compiled it takes minutes. Run "go run ./internal/deploytest/build" before the tests.
//
// # Assumptions
//
//   - The go command is on PATH, and can download modules or has them.
package deploytest
