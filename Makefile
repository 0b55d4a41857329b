# `make` lists the targets. Everything is built into build/, wheels into dist/, tools into .tools/.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BUILD := build
TOOLS := $(CURDIR)/.tools
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
S3_SERVER := github.com/versity/versitygw/cmd/versitygw@v1.8.0
HELM := helm.sh/helm/v3/cmd/helm@v3.22.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1
CYCLONEDX := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

# Packages with assembly and a Go twin, their tests that compare bits, and packages whose goroutines share memory.
TWINS := ./internal/half ./spmv ./lsi ./smooth ./train/...
SAME := Golden|Known|Agree|Bits|Definition|Kernels|Oracle|Bytes
SHARED := ./internal/ahead ./internal/control/... ./internal/direct ./internal/extsort ./internal/inorder ./internal/keysort ./internal/progress ./internal/share \
  ./internal/storage ./internal/tracing ./internal/vfs ./catalog ./tiles ./shards ./spmv ./hops ./group/... ./lsi ./smooth ./partition ./train/... ./stage ./worker ./coordinator ./export
FUZZ_COUNT ?= 20000
FUZZ_BUILD ?= -fuzz=.
FUZZ_LIMIT ?= $(FUZZ_COUNT)x
FUZZ_ONLY ?= .
BENCH_COUNT ?= 10

# Nothing is built with the C library but tests under the race detector, so that all targets share what is compiled.
export CGO_ENABLED := 0
# Programs and tests are stripped, so the compiler writes no tables for debuggers either, which is a sixth of its time. GOFLAGS=
# gives them back.
export GOFLAGS ?= -gcflags=all=-dwarf=false

# What of other modules is left out of the program: pages of gRPC about its requests, and a library for JSON in Arrow,
# which then takes that of Go (no other module knows the tag tinygo).
TAGS := grpcnotrace,tinygo
# How the program is built: without tables for debuggers, and with the commit where git knows it.
STATIC := $(GO) build -tags=$(TAGS) -buildvcs=auto -ldflags='-s -w'

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -t -s $$'\t'

.PHONY: build
build: ## build/ndls, one static file
	$(STATIC) -o $(BUILD)/ndls ./cmd/ndls

.PHONY: lab
lab: ## build/ndls-lab, which ndls bench and ndls reproduce start: measurements, and the tables of the paper
	cd bench && $(STATIC) -o $(CURDIR)/$(BUILD)/ndls-lab ./lab

PREFIX ?= /usr/local
DESTDIR ?=
COMPLETIONS := bash:bash-completion/completions/ndls zsh:zsh/site-functions/_ndls fish:fish/vendor_completions.d/ndls.fish

.PHONY: share
share: build licences ## what belongs into the folder share beside the program, in build/share: manual pages, completions, licences
	rm -rf $(BUILD)/share $(BUILD)/man
	$(BUILD)/ndls man --out $(BUILD)/man
	for page in $(BUILD)/man/*; do \
	  gzip -9n $$page; \
	  install -D -m 644 -t $(BUILD)/share/man/man$${page##*.} $$page.gz; \
	done
	for shell in $(COMPLETIONS); do \
	  $(BUILD)/ndls completion $${shell%%:*} >$(BUILD)/completion; \
	  install -D -m 644 $(BUILD)/completion $(BUILD)/share/$${shell#*:}; \
	done
	install -D -m 644 LICENSE $(BUILD)/share/doc/ndls/copyright
	cp -r $(BUILD)/licences $(BUILD)/share/doc/ndls/licences

.PHONY: install
install: share ## ndls, its manual pages and completions for bash, zsh and fish to PREFIX (/usr/local), below DESTDIR if that is set
	install -D -m 755 $(BUILD)/ndls $(DESTDIR)$(PREFIX)/bin/ndls
	cd $(BUILD)/share && find . -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/{} \;

.PHONY: demo
demo: build ## ndls demo in build/demo: the whole job on a built-in graph, in less than a minute
	rm -rf $(BUILD)/demo
	$(BUILD)/ndls demo $(BUILD)/demo --open=false

# Where tests make their files, and programs are linked.
test test-each: export TMPDIR := $(shell internal/testkit/folder.sh)

# The tag "small" makes blocks and strips of rows small, so that a graph of ten thousand nodes has several; -short draws fewer
# of the cases that are drawn.
TEST := $(GO) test -vet=off -timeout 40m

# Packages in which something depends on blocks and strips, and tests of what is planned for those of users.
BLOCKS := ./internal/packed ./spmv ./hops ./tiles ./shards ./partition ./group/... ./lsi ./smooth ./stage ./coordinator
PLANNED := Planned|Disk|Float16|Intervals|Groups

.PHONY: test
test: ## what each change runs: every package, with small blocks and strips; data sets are found through NDLS_DATA
	$(TEST) -short -tags=$(TAGS),small ./...

.PHONY: test-each
test-each: ## each test, also those that make test leaves out since they take long; tests of bench/
	NDLS_SLOW=1 $(TEST) -short -tags=$(TAGS),small ./...
	cd bench && $(TEST) -tags=$(TAGS) ./...

.PHONY: test-blocks
test-blocks: ## what blocks and strips change, with those of users
	$(TEST) -short -tags=$(TAGS) $(BLOCKS)
	NDLS_SLOW=1 $(TEST) -short -tags=$(TAGS) -run '$(PLANNED)' . ./e2e

.PHONY: test-all
test-all: ## all cases of each test, with small blocks and strips, and then with those of users; tests of bench/
	$(TEST) -tags=$(TAGS),small ./...
	$(TEST) -tags=$(TAGS) ./...
	cd bench && $(TEST) -tags=$(TAGS) ./...

.PHONY: golden
golden: ## every golden case of exact LSI and smoothed features, by every kernel; some minutes
	NDLS_GOLDEN=all $(GO) test -count=1 -v -timeout 0 -run 'TestGoldenCitationGraphs|TestGoldenSmoothedCora' ./lsi ./stage

PAGES := $(BUILD)/pages
BROWSER := @sparticuz/chromium@147.0.0 puppeteer-core@24.43.1 axe-core@4.14.1

.PHONY: test-pages
test-pages: build ## reports of runs, and the page of one that works, opened in Chromium, which npm fetches; screenshots in build/pages
	npm install --silent --no-audit --no-fund --prefix .tools/browser $(BROWSER)
	rm -rf $(PAGES) && mkdir -p $(PAGES)
	$(BUILD)/ndls run --quiet --memory 1GiB --run $(PAGES)/splits --dataset synthetic:nodes=20000,edges=200000,features=64,classes=40,seed=1 --split random:20,30 --splits 2 --runs 2 --epochs 60 >$(PAGES)/log
	$(BUILD)/ndls run --quiet --memory 1GiB --run $(PAGES)/labelled --dataset synthetic:nodes=20000,edges=200000,features=64,classes=8,seed=2 --runs 2 --epochs 60 --targets labelled --epsilon 0.1 >>$(PAGES)/log
	$(BUILD)/ndls partition --quiet --memory 1GiB --run $(PAGES)/karate --dataset karate: >>$(PAGES)/log
	$(BUILD)/ndls report $(PAGES)/splits $(PAGES)/labelled $(PAGES)/karate --out $(PAGES)/several.html
	NODE_FOLDER=.tools/browser node e2e/pages.mjs $(PAGES) $(PAGES)/*/report.html $(PAGES)/several.html
	NODE_FOLDER=.tools/browser node e2e/running.mjs $(PAGES) $(BUILD)/ndls

SITE := $(TOOLS)/venv-site

$(SITE)/installed: docs/site/requirements.txt
	[ -x $(SITE)/bin/python ] || python3 -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: site
site: build lab $(SITE)/installed ## the documentation as a site in build/site/html, its links checked; pip fetches what makes it
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python docs/site/build.py $(CURDIR)/$(BUILD)/ndls

.PHONY: test-site
test-site: site ## the pages of the site, opened in Chromium at two widths; screenshots in build/site/shots
	npm install --silent --no-audit --no-fund --prefix .tools/browser $(BROWSER)
	NODE_FOLDER=.tools/browser node e2e/site.mjs $(BUILD)/site/html $(BUILD)/site/shots

.PHONY: race
race: export CGO_ENABLED := 1
race: ## tests under the race detector, where goroutines share memory
	$(GO) test -vet=off -timeout 20m -race -short -tags=$(TAGS),small $(SHARED)

.PHONY: invariants
invariants: ## tests with the checks that release builds leave out
	$(TEST) -short -tags=$(TAGS),small,invariants $(SHARED)

FAULTS ?= 3

.PHONY: faults
faults: ## each operation on files of a small run fails once, and once the process or the power ends there; an hour (FAULTS=1: six ways at each, three hours)
	NDLS_FAULTS=$(FAULTS) $(GO) test -count=1 -v -timeout 0 -run 'TestEveryOperation|TestDamagedDirectories|TestKilledWhileDiscarding' ./cmd/ndls
	NDLS_FAULTS=$(FAULTS) $(GO) test -count=1 -v -timeout 0 -run 'TestDiskIsNotExceeded|TestSlowBucket' ./e2e
	NDLS_FAULTS=$(FAULTS) $(GO) test -count=1 -v -timeout 0 -run '(TestZombie|TestBucket|TestFlaps|TestNetworkFourWorkers|TestNetworkLoses|TestNetworkSlow|TestNetworkFlaps)/grid' ./e2e

DRAWS ?= 500

.PHONY: metamorphic
metamorphic: ## DRAWS runs with resources, workers, kills and faults drawn from a seed (NDLS_DRAW_SEED): the same bytes; half an hour (make s3-server, for draws of object stores)
	NDLS_DRAWS=$(DRAWS) $(GO) test -count=1 -v -timeout 0 -parallel 8 -run TestMetamorphic ./cmd/ndls

.PHONY: mutants
mutants: ## a small mistake after the other in a copy of the code, each of which a test has to notice; half an hour (MUTANTS="-only lease" for some)
	$(GO) run -C bench ./mutants $(MUTANTS)

.PHONY: noasm
noasm: ## the pure Go twins of the assembly: the bits that tests name, and what they compare with definitions
	$(TEST) -short -tags=$(TAGS),noasm,small -run '$(SAME)' $(TWINS)
	cd bench && $(TEST) -short -tags=$(TAGS),noasm,small ./pass

.PHONY: v3
v3: ## tests with GOAMD64=v3, where the compiler may fuse: the bits must not change
	GOAMD64=v3 $(TEST) -short -tags=$(TAGS),small -run '$(SAME)' $(TWINS)

.PHONY: tools
tools: ## golangci-lint, pinned, in .tools/bin; takes minutes the first time
	GOBIN=$(TOOLS)/bin $(GO) install $(GOLANGCI)

.PHONY: s3-server
s3-server: ## pinned S3 server for tests in .tools/bin; takes minutes
	GOBIN=$(TOOLS)/bin $(GO) install $(S3_SERVER)

.PHONY: lint
lint: tools ## the linters and the format of .golangci.yaml, go vet of what other build tags add, and whether make mutants fits the code
	@$(TOOLS)/bin/golangci-lint fmt --diff || { echo "run .tools/bin/golangci-lint fmt"; exit 1; }
	$(GO) vet -tags=$(TAGS),noasm $(TWINS)
	$(GO) vet -tags=$(TAGS),small,hooks . ./internal/control/rpc ./internal/packed
	$(GO) vet -tags=$(TAGS),invariants ./internal/invariants
	cd bench && $(GO) vet -tags=$(TAGS),noasm ./pass
	$(TOOLS)/bin/golangci-lint run
	cd bench && $(TOOLS)/bin/golangci-lint run
	cd bench && $(GO) test -vet=off ./mutants

GENERATORS := $(wildcard */_gen */*/_gen)
GENERATED = $(sort $(wildcard */*_amd64.s */stubs_*.go */*/*_amd64.s */*/stubs_*.go))

.PHONY: generate
generate: ## assembly and its declarations from the generators in _gen
	for dir in $(GENERATORS); do (cd $$dir && $(GO) generate .); done

.PHONY: generate-check
generate-check: ## fail if generated code is not what the generators write
	before=$$(sha256sum $(GENERATED)); \
	  $(MAKE) --no-print-directory generate; \
	  diff <(echo "$$before") <(sha256sum $(GENERATED)) || { echo "generated code was not up to date; it is now"; exit 1; }

.PHONY: fuzz
fuzz: ## every fuzz target, FUZZ_COUNT inputs each, guided by coverage; FUZZ_BUILD= builds without coverage, which is faster and unguided
	mkdir -p $(BUILD)/fuzz
	failed=; for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
	  $(GO) test -c -tags=$(TAGS) $(FUZZ_BUILD) -o $(BUILD)/fuzz/test $$pkg; \
	  for target in $$(cd $$pkg && $(CURDIR)/$(BUILD)/fuzz/test -test.list '^Fuzz' | grep -E '$(FUZZ_ONLY)'); do \
	    (cd $$pkg && $(CURDIR)/$(BUILD)/fuzz/test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZ_LIMIT) -test.fuzzminimizetime 1x \
	      -test.fuzzcachedir $(CURDIR)/$(BUILD)/fuzz/inputs/$$pkg/$$target) || failed="$$failed $$pkg:$$target"; \
	  done; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

FUZZ_TIME ?= 10m

.PHONY: fuzz-long
fuzz-long: ## make fuzz for FUZZ_TIME each target (10m: a working day in all); FUZZ_ONLY= a pattern of targets; it goes on with the inputs of before
	$(MAKE) --no-print-directory fuzz FUZZ_LIMIT=$(FUZZ_TIME)

.PHONY: fuzz-keep
fuzz-keep: ## the smallest inputs that reach more code, of those that fuzzing has found, into testdata of their packages: 20 a target, of 2 KiB at most
	$(GO) build -C bench -o $(CURDIR)/$(BUILD)/fuzz/corpora ./corpora
	$(BUILD)/fuzz/corpora -only '$(FUZZ_ONLY)' $(BUILD)/fuzz/inputs

.PHONY: bench
bench: build lab $(TOOLS)/venv-bench/installed ## ours beside scipy, torch, DuckDB, ... to bench/RESULTS.md; options in BENCH (libgraphblas-dev, 6 GB from PyPI)
	$(GO) run -C bench ./run $(BENCH)

$(TOOLS)/venv-bench/installed: bench/peers/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir -r $<
	touch $@

.PHONY: bench-go
bench-go: ## Go benchmarks to build/bench.txt, BENCH_COUNT times each, for benchstat
	mkdir -p $(BUILD)
	for module in . bench; do (cd $$module && $(GO) test -run '^$$' -bench . -benchmem -count $(BENCH_COUNT) ./...); done | tee $(BUILD)/bench.txt

.PHONY: bench-cluster
bench-cluster: build ## what a coordinator and one worker take beside ndls run, on 10M edges
	$(GO) run -C bench ./cluster

.PHONY: bench-page
bench-page: build ## what the page of a running job costs: 7 pairs of runs without it, and with it and a listener; 8 minutes
	$(GO) run -C bench ./cluster -page -pairs 7 -edges 3000000 -nodes 150000

.PHONY: bench-tune
bench-tune: build ## a search of 100 trials on Cora of NDLS_DATA beside 100 runs; options in TUNE, such as -every 10
	$(GO) run -C bench ./tune -data $(abspath $(NDLS_DATA))/data $(TUNE)

.PHONY: e2e
e2e: ## the built program: killed, limited, read by other programs (NDLS_PYTHON, NDLS_JS)
	$(GO) test -count=1 -v ./e2e

.PHONY: file-systems
file-systems: build ## runs on exFAT, mergerfs, bindfs, tmpfs, overlay, and with calls that strace refuses (root; exfatprogs, exfat-fuse, mergerfs, bindfs, strace)
	NDLS_FILE_SYSTEMS=1 NDLS_BUILT=$(CURDIR)/$(BUILD)/ndls $(GO) test -count=1 -v -run '^(TestFileSystems|TestCallsThatTheKernelRefuses|TestReadOnlyMount|TestGroupSharesRun|TestWithoutProc|TestLimitsOfTheShell|TestBuild)$$' ./e2e

.PHONY: fused
fused: ## the program for arm64 fuses no products and sums, which would change bits
	GOOS=linux GOARCH=arm64 $(GO) build -o $(BUILD)/arm64/ndls ./cmd/ndls
	NDLS_ARM64=$(CURDIR)/$(BUILD)/arm64/ndls $(TEST) -short -tags=$(TAGS),small -count=1 -run TestNothingIsFusedForArm64 ./e2e

.PHONY: arm64
arm64: ## the program for arm64: it fuses no products and sums, and whole runs of it under qemu-aarch64 (qemu-user) have the same bytes
	@command -v qemu-aarch64 >/dev/null || { echo "make arm64 was skipped: qemu-aarch64 is not installed (package qemu-user)"; exit 0; }; \
	  set -x; GOOS=linux GOARCH=arm64 $(GO) build -o $(BUILD)/arm64/ndls ./cmd/ndls; \
	  qemu-aarch64 $(BUILD)/arm64/ndls --version; \
	  NDLS_ARM64=$(CURDIR)/$(BUILD)/arm64/ndls $(GO) test -count=1 -v -timeout 0 -run Arm64 ./e2e

.PHONY: slurm
slurm: ## deploy/slurm on a Slurm of three nodes on this host (root; slurmctld, slurmd, slurm-client, munge)
	$(GO) build -tags=hooks -o $(BUILD)/ndls-hooks ./cmd/ndls
	deploy/slurm/test.sh $(BUILD)/ndls-hooks

.PHONY: deploy-check
deploy-check: helm ## deploy/kubernetes and deploy/helm against the Kubernetes API's types, and their pods run here (root)
	cd deploy/kubernetes/check && $(GO) vet . && $(GO) test -count=1 .

CHAOS ?= 20

.PHONY: chaos
chaos: ## CHAOS rounds of faults drawn anew: deaths, networks, disks, stores, silence (root, for networks and disks)
	NDLS_CHAOS=$(CHAOS) $(GO) test -count=1 -v -timeout 0 -run TestChaos ./e2e

# The tools of the Python package; the rest of its environment is what .ci/run puts there.
VENV := $(TOOLS)/venv

$(VENV)/python-package: python/requirements-dev.txt
	[ -x $(VENV)/bin/python ] || python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: licences
licences: ## the licences of Go and of the modules in the program, in build/licences, for everything that holds the program
	GO=$(GO) deploy/licences.sh $(BUILD)/licences

# Times in archives are that of the commit, so that archives of one commit have the same bytes.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
VERSION = $(shell sed -n 's/^var Version = "\(.*\)"/\1/p' version.go)
ARCHITECTURES := amd64 arm64

.PHONY: binaries
binaries: ## build/linux-amd64/ndls and build/linux-arm64/ndls, as in everything that is released
	for arch in $(ARCHITECTURES); do \
	  GOOS=linux GOARCH=$$arch $(STATIC) -trimpath -o $(BUILD)/linux-$$arch/ndls ./cmd/ndls; \
	done

# What builds wheels: hatchling and nothing else of what the package is developed with.
WHEEL := $(TOOLS)/venv-wheel

$(WHEEL)/installed: python/requirements-dev.txt
	[ -x $(@D)/bin/python ] || python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $$(grep '^hatchling==' $<)
	touch $@

# Names of processors in the platforms of wheels.
WHEEL_amd64 := x86_64
WHEEL_arm64 := aarch64

.PHONY: wheel
wheel: $(WHEEL)/installed binaries licences ## dist/ndls_graph-*.whl, the Python package with the program, for Linux on amd64 and arm64; ARCHITECTURES=amd64 for one of them
	rm -f dist/*.whl
	for platform in $(foreach arch,$(ARCHITECTURES),$(arch):$(WHEEL_$(arch))); do \
	  (cd python && NDLS_WHEEL_BINARY=$(CURDIR)/$(BUILD)/linux-$${platform%:*}/ndls NDLS_WHEEL_LICENCES=$(CURDIR)/$(BUILD)/licences NDLS_WHEEL_PLATFORM=manylinux_2_17_$${platform#*:} $(WHEEL)/bin/python -m hatchling build -t wheel -d $(CURDIR)/dist); \
	done

.PHONY: image
image: binaries licences ## dist/ndls-*-image.tar, the container image for amd64 and arm64 as an OCI archive (buildah)
	deploy/image.sh dist/ndls-$(VERSION)-image.tar $(VERSION) $(ARCHITECTURES)

.PHONY: helm
helm: $(TOOLS)/bin/helm ## pinned helm in .tools/bin; takes minutes

$(TOOLS)/bin/helm:
	GOBIN=$(TOOLS)/bin $(GO) install $(HELM)

# Packed with tar: helm package writes the time of packing into the archive.
.PHONY: chart
chart: helm ## dist/ndls-*-chart.tgz, the Helm chart
	$(TOOLS)/bin/helm lint --strict --quiet deploy/helm/ndls
	install -d dist
	tar --directory deploy/helm --sort=name --mode=u=rwX,go=rX --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --create ndls | gzip -9n >dist/ndls-$(VERSION)-chart.tgz

# Bills of materials name the checksum of the program that made them, so this is built in one way.
.PHONY: release-tools
release-tools: export GOFLAGS = -trimpath
release-tools: ## pinned GoReleaser and cyclonedx-gomod in .tools/bin; takes ten minutes
	[ -x $(TOOLS)/bin/goreleaser ] || GOBIN=$(TOOLS)/bin $(GO) install $(GORELEASER)
	[ -x $(TOOLS)/bin/cyclonedx-gomod ] || GOBIN=$(TOOLS)/bin $(GO) install $(CYCLONEDX)

.PHONY: release
release: release-tools ## everything of a release in dist/, and nothing is published: source, archives, packages, wheels, image, chart, bills of materials, checksums
	case "$(VERSION) $$(git tag --points-at HEAD | tr '\n' ' ')" in \
	  *-dev\ *|*" v$(VERSION) "*) ;; \
	  *) echo "version.go has $(VERSION), and no tag v$(VERSION) is at this commit: CONTRIBUTING.md says how a release is made" >&2; exit 1 ;; \
	esac
	rm -rf dist
	$(MAKE) --no-print-directory share wheel image chart
	git archive --prefix=ndls-$(VERSION)/ HEAD | gzip -9n >dist/ndls-$(VERSION)-source.tar.gz
	PATH=$(TOOLS)/bin:$$PATH NDLS_VERSION=$(VERSION) NDLS_DATE=$$(date --utc --date=@$(SOURCE_DATE_EPOCH) +%Y-%m-%dT%H:%M:%SZ) \
	  $(TOOLS)/bin/goreleaser release --clean --snapshot
	cp $(BUILD)/goreleaser/{SHA256SUMS,*.tar.gz,*.deb,*.rpm,*.cdx.json} dist/
	cd dist && sha256sum --check --quiet --strict SHA256SUMS && ls

.PHONY: release-try
release-try: ## tries what make release has made: each part is unpacked, installed in a root of its own, and run (Debian, root)
	deploy/release-try.sh

.PHONY: release-check
release-check: vulnerabilities ## make vulnerabilities; make release of HEAD twice, in fresh clones: the same bytes; then make release-try
	deploy/release-check.sh $(TOOLS)

.PHONY: vulnerabilities
vulnerabilities: $(TOOLS)/bin/govulncheck ## known vulnerabilities in code that is called; VULNERABILITIES= a folder or URL in place of https://vuln.go.dev, or "unchecked"
	GOFLAGS= deploy/vulnerabilities.sh $(TOOLS)/bin/govulncheck

$(TOOLS)/bin/govulncheck:
	GOBIN=$(TOOLS)/bin $(GO) install $(GOVULNCHECK)

# The environment in which Python finds the sources of the package, and the program.
PYTHON_PACKAGE := NDLS_BINARY=$(CURDIR)/$(BUILD)/ndls PYTHONPATH=$(CURDIR)/python/src PYTHONDONTWRITEBYTECODE=1

.PHONY: test-python
test-python: build $(VENV)/python-package ## the Python package: ruff, mypy, tests with pandas, polars and networkx, and torch where VENV has it; examples whose packages are there
	cd python && $(VENV)/bin/ruff check --quiet --config pyproject.toml . ../bench/loader ../bench/vectors ../bench/embeddings ../examples && $(VENV)/bin/ruff format --quiet --check --config pyproject.toml . ../bench/loader ../bench/vectors ../bench/embeddings ../examples && $(VENV)/bin/python -m mypy
	cd python && $(PYTHON_PACKAGE) $(VENV)/bin/python -m pytest -q
	$(PYTHON_PACKAGE) $(VENV)/bin/python -m pytest -q -p no:cacheprovider examples

DEBIAN := $(TOOLS)/debian

$(DEBIAN)/installed:
	rm -rf $(@D)
	debootstrap --variant=minbase --include=python3,python3-venv,bash-completion,ca-certificates bookworm $(@D)
	touch $@

# Only root changes its root: for others this is an environment without variables, with a home of its own.
HAS_DEBIAN := $(shell [ "$$(id -u)" != 0 ] || command -v debootstrap)

.PHONY: test-newcomer
test-newcomer: ARCHITECTURES = $(shell $(GO) env GOARCH)
test-newcomer: wheel $(if $(HAS_DEBIAN),$(DEBIAN)/installed) ## wheel, ndls demo, the tutorial, NodeSmoother, types and completion as the pages print them, on a Debian with Python alone (root and debootstrap, else an empty environment), in at most ten minutes
	rm -rf $(BUILD)/newcomer && mkdir -p $(BUILD)/newcomer/{docs,python/tests,work}
	cp README.md $(BUILD)/newcomer/ && cp docs/*.md $(BUILD)/newcomer/docs/ && cp python/tests/{pages,newcomer}.py $(BUILD)/newcomer/python/tests/ && cp dist/*.whl $(BUILD)/newcomer/
	if [ -z "$(HAS_DEBIAN)" ]; then cd $(BUILD)/newcomer/work && exec /usr/bin/python3 ../python/tests/newcomer.py ../*.whl; fi; \
	  chown -R 65534:65534 $(BUILD)/newcomer; \
	  unshare --mount --propagation private bash -euc 'for part in dev proc etc/ssl etc/resolv.conf; do touch -a "$$0/$$part"; mount --rbind "/$$part" "$$0/$$part"; done; \
	    mount --bind $(BUILD)/newcomer "$$0/mnt"; exec chroot --userspec=65534:65534 "$$0" bash -euc "cd /mnt/work; exec python3 ../python/tests/newcomer.py ../*.whl"' $(DEBIAN)

.PHONY: test-engines
test-engines: build ## jobs on clusters of Ray, Dask and Spark on this machine, which pip fetches (1.2 GB; Spark needs Java)
	[ -x $(TOOLS)/venv-engines/bin/python ] || { python3 -m venv $(TOOLS)/venv-engines && $(TOOLS)/venv-engines/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-engines.txt; }
	cd python && $(PYTHON_PACKAGE) $(TOOLS)/venv-engines/bin/python -m pytest -q tests/test_engines.py

VECTORS := $(TOOLS)/venv-vectors
NEO4J := $(TOOLS)/neo4j

$(VECTORS)/installed: python/requirements-vectors.txt
	[ -x $(VECTORS)/bin/python ] || python3 -m venv $(VECTORS)
	$(VECTORS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

$(NEO4J)/installed: examples/vectors/pom.xml
	cd $(<D) && mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=$(NEO4J)
	touch $@

.PHONY: test-neo4j
test-neo4j: build $(VECTORS)/installed $(NEO4J)/installed ## examples/vectors on every store, Neo4j among them (0.7 GB from PyPI; Java and Maven, for Neo4j)
	cd python && $(PYTHON_PACKAGE) NDLS_NEO4J=$(NEO4J) $(VECTORS)/bin/python -m pytest -q -p no:cacheprovider tests/test_vectors.py

EXAMPLES := $(TOOLS)/venv-examples
NEXTFLOW := $(TOOLS)/nextflow

$(EXAMPLES)/installed: examples/requirements.txt
	[ -x $(EXAMPLES)/bin/python ] || python3 -m venv $(EXAMPLES)
	$(EXAMPLES)/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir -r $<
	touch $@

$(NEXTFLOW)/installed: examples/nextflow/pom.xml
	cd $(<D) && mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=$(NEXTFLOW)
	touch $@

.PHONY: test-examples
test-examples: build $(EXAMPLES)/installed $(NEXTFLOW)/installed ## every example on a small graph, and the Python package with PyTorch (7 GB from PyPI; Java and Maven, for Nextflow)
	cd python && $(PYTHON_PACKAGE) $(EXAMPLES)/bin/python -m pytest -q -p no:cacheprovider tests/test_torch.py tests/test_pages.py
	$(PYTHON_PACKAGE) NDLS_EXAMPLES=all NEXTFLOW=$(NEXTFLOW) $(EXAMPLES)/bin/python -m pytest -q -p no:cacheprovider examples

.PHONY: bench-loader
bench-loader: build ## rows a second of ndls.NodeRows beside a loader that reads a row at a time; options in LOADER, such as --nodes 8000000
	NDLS_BINARY=$(CURDIR)/$(BUILD)/ndls PYTHONPATH=python/src $(PYTHON) bench/loader/loader.py $(LOADER)

.PHONY: bench-vectors
bench-vectors: build $(VECTORS)/installed ## rows a second into vector stores beside what each takes from memory, and nearest neighbours beside brute force; options in VECTORS_OPTIONS, such as --nodes 100000
	$(PYTHON_PACKAGE) $(VECTORS)/bin/python bench/vectors/vectors.py --folder $(BUILD)/vectors $(VECTORS_OPTIONS)

PYTHON ?= python3
TABLES ?= transductive base-models correct-and-smooth inductive label-rates sparsity efficiency

.PHONY: results
results: build lab ## the tables of bench/accuracy/RESULTS.md in build/results, from the data sets in NDLS_DATA; PYTHON has scikit-learn and XGBoost, RESULTS further options; hours
	for table in $(TABLES); do $(BUILD)/ndls reproduce $$table --data $(NDLS_DATA)/data --python $(PYTHON) --out $(BUILD)/results $(RESULTS); done

.PHONY: results-peers
results-peers: build lab $(TOOLS)/venv-bench/installed ## tables with graph networks of other papers beside ours, in build/results; needs NDLS_DATA, and 6 GB from PyPI; RESULTS has further options, such as --sets cora; hours
	for table in transductive inductive efficiency; do $(BUILD)/ndls reproduce $$table --peers --data $(NDLS_DATA)/data --python $(TOOLS)/venv-bench/bin/python --out $(BUILD)/results $(RESULTS); done

.PHONY: example-gamlp
example-gamlp: build ## a PyTorch model with attention over hops, on Cora of NDLS_DATA; PYTHON names a python with numpy and torch
	$(BUILD)/ndls run --dataset planetoid:$(NDLS_DATA)/data/cora/cora --run $(BUILD)/gamlp --rule sign --hops 8 --batch-size 0 --label-depth 0
	$(PYTHON) examples/gamlp/gamlp.py $(BUILD)/gamlp --ndls $(BUILD)/ndls

.PHONY: scaling-measured
scaling-measured: ## bench/scaling/measured.json: real runs that the simulation is compared with; a quarter of an hour on a machine of its own, as root
	NDLS_SCALING=$(CURDIR)/bench/scaling/measured.json $(GO) test -count=1 -v -timeout 0 -run TestMeasureScaling ./e2e

.PHONY: bench-sharing
bench-sharing: ## seconds of lsi and smooth with each way to share rows and without it, over cables of three speeds; an hour on a machine of its own, as root (SHARING=-ways=relay for one)
	$(GO) run -C bench ./sharing $(SHARING)

.PHONY: papers100m
papers100m: build ## stage by stage figures on graphs of the shape of ogbn-papers100M
	$(GO) run -C bench ./papers100m

.PHONY: clean
clean: ## remove build/ and dist/
	rm -rf $(BUILD) dist
