#!/usr/bin/env bash
# Compares benchmarks of the working tree with those of a commit: both are built, then run in turn, TIMES times each, and benchstat puts them side by side.
# FILES are copied from the working tree into the commit's before it is built: a benchmark, or a helper, that the commit did not have yet.
#   [TIMES=6] [FILES='a_test.go b_test.go'] tools/compare.sh COMMIT MODULE PACKAGE BENCHMARK [BENCHTIME]
#   tools/compare.sh HEAD~1 . ./strategies '^BenchmarkDecide$' 200ms
set -euo pipefail
if [ $# -lt 4 ]; then
  sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
commit=$1 module=$2 package=$3 benchmark=$4 time=${5:-1s}
root=$(git rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$work/before" > /dev/null 2>&1 || true; rm -rf "$work"' EXIT
git -C "$root" worktree add --quiet --detach "$work/before" "$commit"
# Servers that the benchmarks need were built once, in the working tree.
if [ -d "$root/.cache" ]; then
  ln -s "$(realpath "$root/.cache")" "$work/before/.cache"
fi
for file in ${FILES:-}; do
  mkdir -p "$(dirname "$work/before/$file")"
  cp "$root/$file" "$work/before/$file"
done
go -C "$work/before/$module" test -c -o "$work/before.test" "$package"
go -C "$root/$module" test -c -o "$work/now.test" "$package"
for _ in $(seq "${TIMES:-6}"); do
  for side in before now; do
    dir=$root
    if [ "$side" = before ]; then dir=$work/before; fi
    if ! (cd "$dir/$module/$package" && "$work/$side.test" -test.run '^$' -test.bench "$benchmark" -test.benchtime "$time") > "$work/out" 2>&1 ||
      ! grep -q '^Benchmark' "$work/out"; then
      echo "$benchmark fails, or is not there, $side ($commit is before, the working tree is now; FILES copies what $commit lacks):" >&2
      cat "$work/out" >&2
      exit 1
    fi
    cat "$work/out" >> "$work/$side.txt"
    echo "ran $side" >&2
  done
done
go -C "$root/tools" tool benchstat "before=$work/before.txt" "now=$work/now.txt"
