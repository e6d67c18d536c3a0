// Package tools is a module of its own, so that what it needs is nobody else's: it pins kustomize and
// promtool, which the tests in the folder above run, and checks the Dockerfiles with BuildKit's own parser
// and linter. The folders goreleaser and syft pin one program each: their dependencies exclude each other.
package tools
