# Two commands do all of the set-up on a fresh machine: make run, make test.

GO      ?= go
BUILD   := .build
SHOP    := $(BUILD)/shop
# Files that people wrote: generated ones are checked by "make generate".
SOURCES := $(shell git ls-files '*.go' 2>/dev/null | grep -v '_templ\.go$$')

.DEFAULT_GOAL := help
.PHONY: help run test check generate bench mutants vuln sweep screenshots

help: ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | while IFS="$$(printf '\t')" read -r name what; do printf '  make %-11s %s\n' "$$name" "$$what"; done

run: ## build the shop and open it, with its own PostgreSQL and its own local Stripe
	@mkdir -p $(BUILD)
	@$(GO) build -o $(SHOP) ./cmd/shop
	@exec $(SHOP)

test: ## install what the tests need, and run all of them with the race detector
	$(GO) test -race -timeout 25m ./...

check: ## the cheap checks: format, vet, staticcheck, generated code up to date
	@unformatted="$$($(GO) tool gofumpt -l $(SOURCES))"; if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	GOOS=windows $(GO) vet ./cmd/... ./migrations/... ./idempotency/... ./web/... ./checkout/...
	$(GO) tool staticcheck ./...
	@$(GO) tool templ generate -path web/view >/dev/null 2>&1 || { $(GO) tool templ generate -path web/view; exit 1; }
	@changed="$$(git status --porcelain -- 'web/view/*_templ.go')"; if [ -n "$$changed" ]; then echo "make generate, then commit:"; echo "$$changed"; exit 1; fi
	$(GO) test -run '^TestImports$$' ./cmd/shop

generate: ## the pages' Go code from their templ files
	$(GO) tool templ generate -path web/view

bench: ## speed, as ratios against a floor measured in the same run (BENCH_KEYS=10000000 fills the table further)
	$(GO) test -run '^$$' -bench . -benchtime 2s ./idempotency ./checkout ./web

mutants: ## break each guarantee in a copy of the tree; a survivor is an error
	$(GO) test -tags mutants -v -count=1 -timeout 90m -run '^TestMutants$$' ./e2e

vuln: ## known vulnerabilities; needs to reach the vulnerability database
	@$(GO) tool govulncheck ./... || { echo "govulncheck found something, or could not reach the vulnerability database (see above)"; exit 1; }

sweep: ## kill, cut and delay at every message of every operation, then random runs (SWEEP_SHARD=1/2 is half)
	SWEEP=all RANDOM_RUNS=20 RANDOM_STEPS=40 $(GO) test -v -count=1 -timeout 60m -run '^(TestSweep|TestRandom)$$' ./e2e

screenshots: ## every page at 390 and 1280 px, light and dark, in .build/screenshots; and the README's two pictures
	@mkdir -p .readme
	$(GO) test -tags screenshots -count=1 -timeout 30m -run '^(TestScreenshots|TestReadmePictures)$$' ./e2e
