// Package arch tests what the packages of this module may import, directly or through others. It holds no
// code for use.
//
// Guarantees: with the build tags and the platform of the test run, no package of a pure folder reaches a
// package that its rule forbids.
//
// Non-guarantees: it does not look at test files, nor at files built for other platforms. The direct imports
// of both, and which functions of the standard library may be called, are the linter's concern
// (.golangci.yml).
//
// Assumptions: the go command is on the PATH and the modules are in its cache.
package arch
