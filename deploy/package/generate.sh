#!/bin/sh
# Writes manual pages and completions into the folder $1, with a program built for this machine.
set -eu
rm -rf "$1"
mkdir -p "$1/man" "$1/completions"
CGO_ENABLED=0 go build -o "$1/sbr" ./cmd/sbr
"$1/sbr" man "$1/man"
gzip -9n "$1"/man/*.1
"$1/sbr" completion bash > "$1/completions/sbr.bash"
"$1/sbr" completion fish > "$1/completions/sbr.fish"
"$1/sbr" completion zsh > "$1/completions/_sbr"
"$1/sbr" completion powershell > "$1/completions/sbr.ps1"
rm "$1/sbr"
