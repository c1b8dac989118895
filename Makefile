# make run    build everything and run the demonstration
# make test   build everything and run all tests
# The first of them on a machine builds CPython: 10 to 15 minutes, kept in
# ~/.cache/codeexec-build for every later build and checkout.

GO ?= go
PYTHON_WASM = python-wasm/build.sh

.PHONY: all run build python-wasm test test-python test-go bench lint fuzz clean

all: build

# CPython for WASI, what it is linked with, and the snapshot of it.
python-wasm:
	@$(PYTHON_WASM)

# One static binary that needs nothing else.
build: python-wasm
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/codeexec ./cmd/codeexec

run: build
	@testdata/demo/run bin/codeexec

test: python-wasm test-python test-go

# The guest's Python package, under a native CPython of the same version.
test-python: python-wasm
	@$(PYTHON_WASM) test

# The first start of a build compiles the interpreter for this machine; under
# the race detector that would take a minute.
test-go: build
	@bin/codeexec exec -c 'pass'
	$(GO) test -race -timeout 30m ./...

bench: build
	$(GO) test -run '^$$' -bench . -benchtime 1s -timeout 60m ./wasmhost ./hostfuncs ./bridge/... ./memory ./cmd/...

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run gofmt -w on these files'; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

# Every fuzz test for FUZZTIME. An interesting input is by default made smaller
# for up to a minute, which would be all that happens.
FUZZTIME ?= 20s
fuzz: python-wasm
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target" && $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$package || exit 1; \
		done; \
	done

clean:
	rm -rf bin python-wasm/artifacts/*.zst python-wasm/artifacts/*.zip python-wasm/artifacts/*.json python-wasm/testdata/cpython-tests.tar.gz
