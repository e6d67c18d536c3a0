// Package docs is a folder of pages for people; it holds no code for use. Its tests keep the pages true:
// links resolve, commands are run by a test script, outputs are those of the scripts, Go compiles,
// configuration is valid, tests that are named exist, and every key, metric and dependency has its line.
package docs
