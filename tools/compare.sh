#!/usr/bin/env bash
# Compares benchmarks of the working tree with those of a commit: both are built, then run in turn, TIMES times each, and benchstat puts them side by side.
#   tools/compare.sh COMMIT MODULE PACKAGE BENCHMARK [BENCHTIME]
#   tools/compare.sh HEAD~1 . ./strategies '^BenchmarkDecide$' 200ms
set -euo pipefail
if [ $# -lt 4 ]; then
  sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
commit=$1 module=$2 package=$3 benchmark=$4 time=${5:-1s}
root=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$work/before" > /dev/null 2>&1 || true; rm -rf "$work"' EXIT
git -C "$root" worktree add --quiet --detach "$work/before" "$commit"
# Servers that the benchmarks need were built once, in the working tree.
if [ -d "$root/.cache" ]; then
  mkdir -p "$work/before/.cache"
  cp -r "$root/.cache/kube" "$work/before/.cache/" 2> /dev/null || true
fi
go -C "$work/before/$module" test -c -o "$work/before.test" "$package"
go -C "$root/$module" test -c -o "$work/now.test" "$package"
for _ in $(seq "${TIMES:-6}"); do
  for side in before now; do
    dir=$root
    if [ "$side" = before ]; then dir=$work/before; fi
    (cd "$dir/$module/$package" && "$work/$side.test" -test.run '^$' -test.bench "$benchmark" -test.benchtime "$time") >> "$work/$side.txt"
    echo "ran $side" >&2
  done
done
go -C "$root/tools" tool benchstat "before=$work/before.txt" "now=$work/now.txt"
