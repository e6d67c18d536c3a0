# Nothing here needs root, but for `make e2e`, `make soak`, `make starts`, and `make browser` and `make postgres` where a Chromium or a PostgreSQL has to be installed. `make` alone lists the targets.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
BENCH    ?= .
FUZZTIME ?= 10s
MODULES  := . test test/kube test/serfagent test/ferretdb test/deploy/tools tools
ROUNDS   ?= 20
SEED     ?= 1
CHECKS   ?= 2000
TIMES    ?= 5
# The harness but what checks deploy/, which needs programs that take minutes to build.
HARNESS  := $$($(GO) -C test list ./... | grep -v '/test/deploy')
RUN      ?= TestStarts

# Tests spend two thirds of their time collecting garbage of some ten MB, unless told that more may wait (the largest takes 0.9 GB then);
# many packages wait for one thing or another, so that four run at a time.
FAST     := GOGC=400 $(GO)

# Two apt-get at a time are one too many.
APT      := flock Makefile

# Property tests draw the same cases in every run, so that a red run means the change; `make properties` draws others.
export RAPID_SEED ?= 1

# The tools are built once for each Go version and content of tools/go.sum.
TOOLS_KEY := $(shell { $(GO) env GOVERSION; cat tools/go.mod tools/go.sum; } | cksum | cut -d ' ' -f 1)
LINT      := .cache/bin/golangci-lint-$(TOOLS_KEY)
VULN      := .cache/bin/govulncheck-$(TOOLS_KEY)

.PHONY: build
build: ## Build bin/sbr
	@echo "building bin/sbr"
	@$(GO) build -o bin/sbr ./cmd/sbr

.PHONY: demo
demo: build ## Split a Serf cluster in this process and watch one side win (ARGS="--split 1/4")
	@bin/sbr demo $(ARGS)

.PHONY: test
test: kube browser postgres ## Run all tests but those of `make e2e` and `make deploy-check`: also against a real API server, in a real browser
	$(FAST) test -p 4 -timeout 25m ./...
	$(FAST) -C test test -p 4 -timeout 25m $(HARNESS)

.PHONY: test-fast
test-fast: ## Run the short tests
	$(FAST) test -short -p 4 -timeout 5m ./...
	$(FAST) -C test test -short -p 4 -timeout 5m $(HARNESS)

.PHONY: race
race: kube browser postgres ## Run all tests with the race detector
	CGO_ENABLED=1 $(GO) test -race -timeout 40m ./...
	CGO_ENABLED=1 $(GO) -C test test -race -timeout 40m $(HARNESS)

.PHONY: e2e
e2e: kube build hosts postgres ## Run real agents on hosts of their own (network namespaces, as root) and cut them with dropped packets
	SBR_E2E=1 $(GO) -C test test -count=1 -p 1 -parallel 6 -timeout 40m ./hosts ./hosts/lab

.PHONY: soak
soak: kube hosts ## Cut such hosts at random, ROUNDS times (20), from SEED (1), and report (ARGS="--singleton", --planned or --shards; ARGS="--family force-leave", "--family record" or another that --help names for one kind of rounds; "--store postgres", etcd or mongodb for another lease store)
	$(GO) build -C test -o ../bin/soak ./hosts/soak
	bin/soak --rounds $(ROUNDS) --seed $(SEED) $(ARGS)

.PHONY: starts
starts: kube build hosts ## Start clusters on such hosts after power loss, lost disks, lost rights …, TIMES times each (5), in both modes (RUN=TestStarts/islands)
	SBR_E2E=all $(GO) -C test test -count=$(TIMES) -parallel 3 -timeout 180m -v -run '$(RUN)' ./hosts

# What the hosts need: ip and nft, and for one test systemd, which boots on a host.
.PHONY: hosts
hosts:
	@{ command -v ip && command -v nft && command -v systemctl; } > /dev/null || \
		{ apt-get update -qq && apt-get install -y --no-install-recommends iproute2 nftables systemd; }

.PHONY: deploy
deploy: ## Build what checks deploy/ and packs a release, once, into .cache/
	@$(GO) run -C test ./buildcache/build kustomize promtool goreleaser syft

.PHONY: deploy-check
deploy-check: deploy kube ## Check what is in deploy/: manifests, units, packages, alerts, dashboard, container files
	@command -v rpm > /dev/null || apt-get install -y --no-install-recommends rpm || echo "no rpm: its test is skipped"
	$(GO) -C test test -timeout 20m ./deploy
	$(GO) -C test/deploy/tools vet .
	$(GO) -C test/deploy/tools test .

.PHONY: packages
packages: ## Write archives, .deb, .rpm, checksums and SBOMs into .cache/dist
	@mkdir -p .cache
	@$(GO) run -C test ./buildcache/build goreleaser syft > .cache/packagers.txt
	@PATH="$$(xargs -n1 dirname < .cache/packagers.txt | paste -sd:):$$PATH" goreleaser release --snapshot --clean --skip=publish

.PHONY: release
release: ## Publish the release of this commit's tag, with its section of CHANGELOG.md (the release workflow does it)
	@mkdir -p .cache
	@awk -v version="$$(git describe --tags --exact-match | sed 's/^v//')" \
		'/^## / { on = index($$2, "[" version "]") == 1; next } on' CHANGELOG.md > .cache/notes.md
	@grep -q . .cache/notes.md || { echo "CHANGELOG.md has no section for the tag of this commit" >&2; exit 1; }
	@$(GO) run -C test ./buildcache/build goreleaser syft > .cache/packagers.txt
	@PATH="$$(xargs -n1 dirname < .cache/packagers.txt | paste -sd:):$$PATH" goreleaser release --clean --release-notes=.cache/notes.md

.PHONY: bench
bench: kube ## Run the benchmarks (BENCH=regexp), and measure double-active time over 100 splits
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./...
	$(GO) -C test test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./...
	SBR_SPLITS=100 $(GO) test -run '^TestDoubleActive' -v -timeout 60m ./downing

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s)
	@mkdir -p .cache
	@for module in . test; do \
		$(GO) -C $$module test -run '^$$' -list '^Fuzz' ./... | awk -v module=$$module \
			'/^Fuzz/ { name[n++] = $$1 } $$1 == "ok" { for (i = 0; i < n; i++) print module, $$2, name[i]; n = 0 }'; \
	done > .cache/fuzz-targets.txt
	@test -s .cache/fuzz-targets.txt || { echo "no fuzz target found" >&2; exit 1; }
	@while read -r module pkg name; do \
		echo "$$pkg $$name"; \
		$(GO) -C $$module test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" < /dev/null; \
	done < .cache/fuzz-targets.txt

.PHONY: properties
properties: ## Run the property tests with CHECKS (2000) cases each, drawn anew
	@for module in . test; do \
		RAPID_SEED=0 RAPID_CHECKS=$(CHECKS) $(GO) -C $$module test -count=1 -timeout 60m \
			$$(cd $$module && git grep -l 'rapid\.Check' -- '*_test.go' ':!test' | xargs -n1 dirname | sort -u | sed 's,^,./,'); \
	done

.PHONY: mutants
mutants: ## Seed bugs into the resolver, the lease and what drives them, one at a time: the tests must catch each (ARGS="--only 'verdict-*'")
	$(GO) run -C test ./mutants --tier each $(ARGS)

.PHONY: check
check: check-format vet lint check-tidy ## Check format, vet, lint and tidiness

.PHONY: check-format
check-format: $(LINT)
	$(LINT) fmt --diff

.PHONY: vet
vet:
	$(GO) vet ./...
	$(GO) -C test vet ./...

.PHONY: lint
lint: $(LINT) ## Run the linters
	$(LINT) config verify
	$(LINT) run ./...
	cd test && ../$(LINT) run ./...

.PHONY: check-tidy
check-tidy:
	@status=0; for module in $(MODULES); do \
		echo "$(GO) -C $$module mod tidy -diff"; \
		$(GO) -C $$module mod tidy -diff || status=1; \
	done; exit $$status

.PHONY: vuln
vuln: $(VULN) ## Look for known vulnerabilities (needs a network)
	$(VULN) ./...

.PHONY: fmt
fmt: $(LINT) ## Format the code
	$(LINT) fmt

.PHONY: tidy
tidy: ## Tidy each module
	@for module in $(MODULES); do \
		echo "$(GO) -C $$module mod tidy"; \
		$(GO) -C $$module mod tidy; \
	done

.PHONY: generate
generate: ## Rewrite docs/cli.md, docs/configuration.md and the JSON Schemas from the program
	$(GO) generate ./...

.PHONY: kube
kube: ## Build kube-apiserver, etcd and a stock Serf agent for the tests, once, into .cache/
	@$(GO) run -C test ./buildcache/build etcd kube-apiserver serf

.PHONY: browser
browser: ## Install Chromium for the tests, where there is none (apt-get, as root), or say how
	@$(APT) $(GO) run -C test ./browser/install

# The tests start servers of their own; what the package starts is not touched.
.PHONY: postgres
postgres: ## Install PostgreSQL for the tests, where there is none (apt-get, as root; else set SBR_POSTGRES_BIN to the folder with initdb), and fetch a newer one by Maven's client
	@ls $${SBR_POSTGRES_BIN:-/usr/lib/postgresql/*/bin}/initdb > /dev/null 2>&1 || $(APT) bash -c \
		'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql'
	@$(GO) run -C test ./buildcache/build postgres > /dev/null || echo "no second version of PostgreSQL: the tests do without"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(LINT):
	@echo "building golangci-lint (once; some minutes on a small machine)"
	@rm -f .cache/bin/golangci-lint-*
	@$(GO) build -C tools -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(VULN):
	@echo "building govulncheck (once)"
	@rm -f .cache/bin/govulncheck-*
	@$(GO) build -C tools -o $(CURDIR)/$@ golang.org/x/vuln/cmd/govulncheck
