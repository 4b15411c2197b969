# HealthScope. `make help` lists what there is to do.

SHELL := /usr/bin/env bash -o pipefail
.DEFAULT_GOAL := help

# Nothing is fetched but Go modules, at the versions in go.mod, apis/go.mod, config/tools/go.mod, config/tools/helm/go.mod, config/tools/krew/go.mod, config/tools/proto/go.mod, e2e/bench/go.mod and e2e/controlplane/build/go.mod.
# Everything is compiled with the same flags, those of a release, so that a package is compiled once for all: programs, tools,
# linters and tests. Only the race detector needs others.
export GOFLAGS ?= -mod=readonly -trimpath
export CGO_ENABLED := 0
export GOWORK := off

TOOL := go tool -modfile=config/tools/go.mod
CONTROLLER_GEN := $(TOOL) controller-gen
GOLANGCI_LINT := $(TOOL) golangci-lint
# "enrol" is a package.
MISSPELL := $(TOOL) misspell -locale US -i enrol
ACTIONLINT := go tool -modfile=config/tools/actionlint/go.mod actionlint
CONTROLPLANE := go run ./e2e/controlplane/cmd/controlplane

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS = -s -w -X github.com/healthscope/healthscope/controllers/commands.version=$(VERSION)

# The packages of the program's module and of that of the types, which other projects import.
PACKAGES := ./... github.com/healthscope/healthscope/apis/...
# The packages that start API servers or etcd, or have other tests that -short leaves out. The race detector makes them four
# times as expensive, so `make test` uses it for the other packages, and `make test-extended` for these.
SUITES = $(shell grep -rlE '(suite\.(Run|NeedsControlPlane)|testing\.Short)\b' --include=*_test.go controllers healthscope | xargs -n 1 dirname | sort -u | sed 's|^|./|') ./e2e/...

# Those of them that take longest, and begin.
LONGEST := ./controllers/fleet ./e2e/charted ./e2e/rights ./e2e ./e2e/chart ./e2e/newcomer ./controllers/scope ./controllers/monitor

# How many packages are tested at once: most of the time they wait.
TESTPACKAGES ?= 4

# How long the fuzz targets run in `make fuzz`, each.
FUZZTIME ?= 30s
FUZZPACKAGES ?= $(PACKAGES)
# The same in `make soak`, which fuzzes the health rules and the readers of bundles only.
SOAKFUZZTIME ?= 10m

##@ Main

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make <target>\n"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-zA-Z_-]+:.*?##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: controlplane build ## Show an application's health travel to kubectl, REST, metrics and A&AI (ONCE=1: without a terminal, checked)
	@go run ./e2e/demo $(if $(ONCE),--once)

# Test programs end soon: collecting garbage less often costs memory, and saves CPU.
.PHONY: test
test: controlplane helm build ## Run all tests
	@echo "==> go test: compiling and running all tests (the first time, compiling takes a few minutes)"
	@suites=$$(go list -buildvcs=false $(LONGEST) $(SUITES) ./config/...) || exit 1; \
	units=$$(go list -buildvcs=false $(PACKAGES) | grep -vxF "$$suites") || exit 1; failed=0; export GOGC=400; \
	CGO_ENABLED=1 go test -race -shuffle=on -p $(TESTPACKAGES) $$units || failed=1; \
	go test -shuffle=on -timeout 30m -p $(TESTPACKAGES) $$suites || failed=1; \
	exit $$failed

.PHONY: unit
unit: ## Run the tests that need no control plane; Go remembers what has not changed
	@go test -short -p $(TESTPACKAGES) $$(go list -buildvcs=false $(PACKAGES) | grep -v /e2e)

.PHONY: test-extended
test-extended: controlplane helm build ## Run what takes too long for every change: all suites with the race detector, every alert caused for real, version skew, floods with the default budget, 300 histories of rsync, long property tests, every benchmark at its smallest size, fuzzing, soak
	HEALTHSCOPE_TEST_EXTENDED=1 go test -timeout 30m ./e2e/observed ./e2e/charted ./controllers/fleet
	HEALTHSCOPE_TEST_EXTENDED=1 go test ./controllers/commands -ginkgo.focus 'a controller that is frozen'
	HEALTHSCOPE_RSYNC_HISTORIES=0-299 go test -timeout 60m ./controllers/rsync -ginkgo.focus 'whatever fails and whoever asks'
	@echo "==> go test with the race detector of what starts API servers"
	CGO_ENABLED=1 go test -race -shuffle=on -timeout 60m -p $(TESTPACKAGES) $(SUITES)
	@echo "==> property tests, ten times as long"
	@go test -short -timeout 60m $$(grep -rl --include=*_test.go pgregory.net/rapid aai controllers healthscope | xargs -n 1 dirname | sort -u | sed 's|^|./|') -args -rapid.checks=1000
	@echo "==> go test of the benchmarks"
	@go test -C e2e/bench -timeout 30m ./...
	@$(MAKE) --no-print-directory fuzz
	@$(MAKE) --no-print-directory soak

.PHONY: bench
bench: controlplane ## Measure HealthScope on a real control plane, beside the floor and what was measured of its predecessors (BENCHFLAGS="--scale 0.05 flip"; see config/docs/benchmarks.md)
	@go run -C e2e/bench . $(BENCHFLAGS)

.PHONY: soak
soak: controlplane ## Run under load for an hour while A&AI, API server and leaders fail, and fail when anything grows, is unexplained or wrong (SOAKFLAGS="--duration 5m --seed 7"); then fuzz what reads foreign objects
	@go run -C e2e/bench . soak $(SOAKFLAGS)
	@$(MAKE) --no-print-directory fuzz FUZZTIME=$(SOAKFUZZTIME) FUZZPACKAGES="./healthscope/rules ./healthscope/bundle"

##@ Development

.PHONY: build
build: ## Build bin/healthscope and bin/aai-simulator
	@mkdir -p bin
	@echo "==> go build: bin/healthscope (the first time, compiling takes a few minutes)"
	@go build -ldflags "$(LDFLAGS)" -o bin/healthscope .
	@go build -o bin/aai-simulator ./aai/simulator/cmd/aai-simulator

.PHONY: controlplane
controlplane: ## Build a Kubernetes control plane from Go modules, once for each machine and version
	@echo "==> control plane (the first time, compiling takes several minutes)"
	@$(CONTROLPLANE)

.PHONY: helm
helm: ## Build Helm from its source, once for each machine and version
	@echo "==> Helm (the first time, compiling takes several minutes)"
	@go tool -modfile=config/tools/helm/go.mod -n helm >/dev/null

.PHONY: generate
generate: ## Generate gRPC services, deep copies, CRDs, RBAC, the chart's schema of the configuration file, the OpenAPI document and tables of the documentation, and copy what the Helm chart takes from config
	go run -C config/tools/proto . $(CURDIR)/controllers/rsync/rpc
	$(CONTROLLER_GEN) object paths=./apis/...
	$(CONTROLLER_GEN) crd:allowDangerousTypes=true paths=./apis/... output:crd:dir=config/crd
	$(CONTROLLER_GEN) rbac:roleName=healthscope-controller paths=./controllers/fleet paths=./controllers/enrol paths=./controllers/access paths=./controllers/scope paths=./controllers/inventory output:rbac:stdout > config/rbac/controller_role.yaml
	$(CONTROLLER_GEN) rbac:roleName=healthscope-monitor paths=./controllers/monitor paths=./controllers/access output:rbac:stdout > config/rbac/monitor_role.yaml
	$(CONTROLLER_GEN) rbac:roleName=healthscope-controller-oam paths=./controllers/scope/rights/oam output:rbac:stdout > config/rbac/controller_oam.yaml
	for option in applicationconfigurations applicationhealth labelservices; do \
	  $(CONTROLLER_GEN) rbac:roleName=healthscope-controller-$$option paths=./controllers/oam/rights/$$option output:rbac:stdout > config/rbac/oam/$$option/role.yaml || exit 1; \
	done
	for option in createbundles discovery secrets trusted; do \
	  $(CONTROLLER_GEN) rbac:roleName=healthscope-monitor-$$option paths=./controllers/monitor/rights/$$option output:rbac:stdout > config/rbac/options/$$option/role.yaml || exit 1; \
	done
	rm -rf charts/healthscope/files
	mkdir -p charts/healthscope/files/crd charts/healthscope/files/rbac charts/healthscope/files/prometheus charts/healthscope/files/grafana
	cp config/crd/*_*.yaml charts/healthscope/files/crd
	cp config/integrations/oam/applicationconfigurations.yaml charts/healthscope/files/crd/core.oam.dev_applicationconfigurations.yaml
	cp config/rbac/controller_role.yaml config/rbac/controller_oam.yaml config/rbac/monitor_role.yaml charts/healthscope/files/rbac
	cp config/rbac/deploy/role.yaml charts/healthscope/files/rbac/controller_deploy.yaml
	for option in applicationconfigurations applicationhealth labelservices; do \
	  cp config/rbac/oam/$$option/role.yaml charts/healthscope/files/rbac/controller_$$option.yaml || exit 1; \
	done
	for option in createbundles discovery secrets trusted; do \
	  cp config/rbac/options/$$option/role.yaml charts/healthscope/files/rbac/monitor_$$option.yaml || exit 1; \
	done
	cp config/prometheus/rules.yaml charts/healthscope/files/prometheus
	cp config/grafana/*.json charts/healthscope/files/grafana
	go run ./config/tables

.PHONY: picture
picture: controlplane helm ## Draw the pictures of the documentation that show real data: of the README's commands, and of the dashboard, which needs Prometheus
	go test ./e2e/newcomer -count=1 -run TestTheReadmeIsTrue -timeout 30m -args -picture
	HEALTHSCOPE_TEST_EXTENDED=1 HEALTHSCOPE_REQUIRE_PROMETHEUS=1 go test ./e2e/observed -count=1 -timeout 30m -args -picture

.PHONY: fmt
fmt: ## Format the code
	$(GOLANGCI_LINT) fmt
	for module in apis e2e/bench; do (cd $$module && go tool -modfile=$(CURDIR)/config/tools/go.mod golangci-lint fmt) || exit 1; done

.PHONY: lint
lint: ## Run the linters
	@echo "==> golangci-lint (the first time, compiling it takes a few minutes)"
	$(GOLANGCI_LINT) run
	for module in apis e2e/bench; do (cd $$module && go tool -modfile=$(CURDIR)/config/tools/go.mod golangci-lint run) || exit 1; done
	@echo "==> misspell, in what users read"
	@{ find . -name '*.md' -not -path './.*/*' -not -path './bin/*'; ls config/crd/*.yaml config/prometheus/*.yaml config/grafana/*.json charts/healthscope/*.yaml charts/healthscope/templates/NOTES.txt healthscope/api/openapi.json; } | xargs env $(MISSPELL) -error
	@echo "==> actionlint"
	@$(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME
	@dirs=$$(go list -f '{{.Dir}}' $(FUZZPACKAGES)) || exit 1; for dir in $$dirs; do \
	  tests=$$(go test -C "$$dir" -list '^Fuzz' .) || { echo "$$tests"; exit 1; }; \
	  for target in $$(grep '^Fuzz' <<< "$$tests"); do \
	    echo "==> $${dir#$(CURDIR)/} $$target"; go test -C "$$dir" -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) . || exit 1; \
	  done; \
	done

##@ Checks

.PHONY: verify
verify: ## Check that generated files, formatting, modules and linters are in order; changes nothing
	@echo "==> generated files"
	@before=$$(mktemp -d) && trap 'rm -rf "$$before"' EXIT && cp -r apis config charts controllers/rsync/rpc healthscope/api/openapi.json "$$before" && $(MAKE) --no-print-directory generate >/dev/null && \
	  { diff -r "$$before/apis" apis && diff -r "$$before/config" config && diff -r "$$before/charts" charts && diff -r "$$before/rpc" controllers/rsync/rpc && diff "$$before/openapi.json" healthscope/api/openapi.json || \
	    { cp -r "$$before/apis" "$$before/config" "$$before/charts" .; cp -r "$$before/rpc" controllers/rsync; cp "$$before/openapi.json" healthscope/api; echo 'generated files are out of date: run "make generate"'; exit 1; }; }
	@echo "==> go.mod"
	@GOFLAGS= go mod tidy -diff
	@for module in apis config/tools/proto e2e/bench; do GOFLAGS= go -C $$module mod tidy -diff || { echo "$$module/go.mod is out of date: run \"go -C $$module mod tidy\""; exit 1; }; done
	@echo "==> go vet"
	@go vet $(PACKAGES)
	@go -C config/tools/proto vet ./...
	@go -C e2e/bench vet ./...
	@$(MAKE) --no-print-directory lint

include config/tools/release/release.mk
