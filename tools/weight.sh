#!/usr/bin/env bash
# Counts the lines of Go by room, and beside each its budget: what is not a test, harness, and tests. Lines are counted raw;
# generated files are left out. Run it anywhere in the repository: tools/weight.sh
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"

# The rooms, the first prefix that fits counts; and the budget of lines that are not tests.
rooms='sbr/reachability 500
sbr 1900
strategies 500
lease/leasetest 1000
lease/lock 350
lease/fence 480
lease/memory 150
lease/file 750
lease/kubernetes 1600
lease/etcd 250
lease/postgres 250
lease/mongodb 250
lease 2300
downing/agentrpc 1200
downing/memnet 900
downing/wire 450
downing 2600
singleton 1700
sharding 2600
simulator 9000
internal/agent 2800
internal/config 1050
internal/program 2300
internal/demo 350
internal/slot 700
internal 0
cmd 3600
test 10000
docs 0
deploy 0'

git ls-files '*.go' | xargs grep -L '^// Code generated' | xargs wc -l | grep -v ' total$' | awk -v rooms="$rooms" '
BEGIN {
	n = split(rooms, line, "\n")
	for (i = 1; i <= n; i++) { split(line[i], r, " "); name[i] = r[1]; budget[i] = r[2] }
}
{
	path = $2
	# What the packages of a room and the simulator share lies in internal/, and counts where it belongs.
	if (sub(/^internal\/handover\//, "singleton/", path)) ; else if (sub(/^internal\/shards\//, "sharding/", path)) ;
	else sub(/^internal\/probe\//, "downing/", path)
	for (i = 1; i <= n && index(path, name[i] "/") != 1; i++);
	if (i > n) { name[i] = "(elsewhere)"; n = i }
	# What only checks and tests import is harness, wherever it lies.
	if (path ~ /_test\.go$/) tests[i] += $1
	else if (path ~ /^test\// || path ~ /^(simulator\/)?internal\/[a-z]*test\// || path ~ /^internal\/(ledger|linear|kubefake|partial|process|race|arch)\//) harness[i] += $1
	else product[i] += $1
	files++
}
END {
	printf "%-20s %8s %8s %8s %8s\n", "room", "product", "budget", "harness", "tests"
	for (i = 1; i <= n; i++) {
		if (product[i] + harness[i] + tests[i] == 0) continue
		printf "%-20s %8d %8s %8d %8d\n", name[i], product[i], budget[i] ? budget[i] : "", harness[i], tests[i]
		p += product[i]; h += harness[i]; t += tests[i]
		if (name[i] != "simulator") s += product[i]
	}
	printf "%-20s %8d %8d %8d %8d\n", "all", p, 40000, h, t
	printf "%-20s %8d %8d\n", "without simulator", s, 31000
	printf "%d files of Go; budgets: harness 10000, tests 45000\n", files
}'
