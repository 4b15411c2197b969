# What a release is made of, included by the Makefile. .github/workflows/release.yml says in which order; config/docs/release.md explains it.

RELEASE_TOOL := go tool -modfile=config/tools/release/go.mod
HELM := go tool -modfile=config/tools/helm/go.mod helm

# Where images and charts go.
REGISTRY ?= ghcr.io
IMAGE ?= $(REGISTRY)/healthscope/healthscope
CHARTS ?= oci://$(REGISTRY)/healthscope/charts
# Where files go.
DIST ?= dist

BINARIES := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# The time of the commit, which images bear: they have none of their own.
COMMITTED = $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# The user is a number: Kubernetes cannot tell whether a name is root's.
KO = SOURCE_DATE_EPOCH=$(COMMITTED) VERSION=$(VERSION) KO_DOCKER_REPO=$(IMAGE) $(RELEASE_TOOL) ko build . --bare --tags=$(VERSION) --image-user=65532:65532 \
  --image-label=org.opencontainers.image.source=https://github.com/healthscope/healthscope,org.opencontainers.image.licenses=Apache-2.0,org.opencontainers.image.version=$(VERSION) \
  --sbom=spdx --sbom-dir=$(DIST)
# What does not depend on who packs it, and when.
TAR := tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0

##@ Release

.PHONY: licenses
licenses: ## Write the licenses of all modules that are linked into the program to kodata, which the image takes up
	@mkdir -p kodata
	@go run ./config/licenses/cmd/licenses > kodata/THIRD-PARTY-LICENSES
	@cp LICENSE kodata/LICENSE

.PHONY: image
image: licenses ## Build the container image for all platforms as an OCI layout in dist/image; only the base image is pulled
	@rm -rf $(DIST)/image && mkdir -p $(DIST)
	$(KO) --push=false --oci-layout-path=$(DIST)/image

.PHONY: image-archive
image-archive: VERSION := $(shell sed -n 's/^appVersion: //p' charts/healthscope/Chart.yaml)
image-archive: licenses ## Build the container image that the chart asks for, for this machine's architecture, as dist/image.tar, which kind, k3d and minikube load
	@mkdir -p $(DIST)
	$(KO) --push=false --platform=linux/$$(go env GOARCH) --tarball=$(DIST)/image.tar

.PHONY: image-push
image-push: licenses ## Build the container image for all platforms, and push it to IMAGE
	@mkdir -p $(DIST)
	$(KO) | tee $(DIST)/image.txt

.PHONY: image-check
image-check: ## Build the image on a base that stands in for the real one, push it to a registry in the test, and look into it
	cd config/tools/release && go vet . && go test -count=1 -timeout 30m .

.PHONY: dist
dist: licenses ## Make the files of a release in dist: binaries, CRDs, manifests, chart, krew's manifest (VERSION=v0.1.0)
	@chart=$$(sed -n 's/^appVersion: //p' charts/healthscope/Chart.yaml); [ "$(VERSION)" = "$$chart" ] || { echo "the version is $(VERSION), and that of the chart $$chart: they must be the same" >&2; exit 1; }
	@rm -rf $(DIST) && mkdir -p $(DIST)/build
	@cp LICENSE kodata/THIRD-PARTY-LICENSES $(DIST)/build
	@for platform in $(BINARIES); do \
	  echo "==> $$platform"; \
	  GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -ldflags "$(LDFLAGS)" -o $(DIST)/build/healthscope . && \
	  $(TAR) -C $(DIST)/build -c healthscope LICENSE THIRD-PARTY-LICENSES | gzip -n > $(DIST)/healthscope_$(VERSION)_$${platform%/*}_$${platform#*/}.tar.gz || exit 1; \
	done; rm -r $(DIST)/build
	$(RELEASE_TOOL) kustomize build config/crd > $(DIST)/crds.yaml
	@for folder in default hub member; do $(RELEASE_TOOL) kustomize build config/$$folder > $(DIST)/$$folder.yaml || exit 1; done
	$(HELM) package charts/healthscope --destination $(DIST)
	@$(MAKE) --no-print-directory krew

.PHONY: krew
krew: ## Write the manifest by which krew installs the program as a plugin of kubectl to dist/krew.yaml, for the archives in dist
	@{ sed 's/VERSION/$(VERSION)/' config/tools/krew/plugin.yaml && for platform in $(BINARIES); do \
	  archive=healthscope_$(VERSION)_$${platform%/*}_$${platform#*/}.tar.gz && sum=$$(sha256sum < $(DIST)/$$archive) && \
	  printf '  - selector: {matchLabels: {os: %s, arch: %s}}\n    uri: %s\n    sha256: %s\n    bin: healthscope\n' \
	    $${platform%/*} $${platform#*/} https://github.com/healthscope/healthscope/releases/download/$(VERSION)/$$archive $${sum%% *} || exit 1; \
	done; } > $(DIST)/krew.yaml

.PHONY: krew-check
krew-check: ## Make such a manifest, and let krew install the plugin by it on all platforms
	cd config/tools/krew && go vet . && go test -count=1 -timeout 10m .

.PHONY: chart-push
chart-push: ## Push the chart that is in dist to CHARTS
	$(HELM) push $(DIST)/healthscope-$(VERSION:v%=%).tgz $(CHARTS) 2>&1 | tee $(DIST)/chart.txt

.PHONY: checksums
checksums: ## Write the SHA-256 of every file of the release to dist/checksums.txt
	@sums=$$(cd $(DIST) && sha256sum *.tar.gz *.tgz *.yaml *.spdx.json) && printf '%s\n' "$$sums" > $(DIST)/checksums.txt

.PHONY: registry-login
registry-login: ## Log in to REGISTRY as REGISTRY_USER, with the password that is read: for ko, cosign and Helm
	@read -r password && \
	  printf '%s' "$$password" | $(RELEASE_TOOL) ko login $(REGISTRY) --username "$(REGISTRY_USER)" --password-stdin && \
	  printf '%s' "$$password" | $(HELM) registry login $(REGISTRY) --username "$(REGISTRY_USER)" --password-stdin

.PHONY: sign
sign: ## Sign REFERENCES, images and charts with a digest, and dist/checksums.txt, as the workflow that runs this
	@for reference in $(REFERENCES); do $(RELEASE_TOOL) cosign sign --yes --recursive "$$reference" || exit 1; done
	$(RELEASE_TOOL) cosign sign-blob --yes --bundle $(DIST)/checksums.txt.sigstore.json $(DIST)/checksums.txt

.PHONY: release-notes
release-notes: ## Print what the changelog says of VERSION
	@awk -v heading='## [$(VERSION:v%=%)]' 'index($$0, "## [") == 1 {on = index($$0, heading) == 1; next} /^\[[^]]*\]: / {on = 0} on' CHANGELOG.md | grep . || { echo "CHANGELOG.md has nothing of $(VERSION)" >&2; exit 1; }
