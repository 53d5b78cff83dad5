# `make` says what there is. Everything is built below target/, and nothing is installed for good
# but the Debian packages that lab/install.sh names as it installs them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test soak fuzz bench lint screenshots native monitoring browser lab clients sdks network

export CARGO_TARGET_DIR := $(CURDIR)/target
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := target/tools/bin/cargo-deny
NOT_RUN := $(CARGO_TARGET_DIR)/not-run.txt
WITHOUT_LIBPCAP := $(CARGO_TARGET_DIR)/crates-without-libpcap.txt

help:
	@echo 'make demo         build skewtap and let it find planted gaps between real programs'
	@echo 'make test         all tests, with the real libcurl that sleeps blind'
	@echo 'make soak         5 minutes of load and faults on the proxy, 10 of load and kill -9 on the collector'
	@echo 'make fuzz         every parser, 10 seconds each'
	@echo 'make bench        measure it beside nginx, HAProxy and Rotel (BENCH_QUICK=1: coarse and sooner)'
	@echo 'make lint         formatting, clippy, docs, dependency walls and licences, shell scripts'
	@echo 'make screenshots  take the pictures in docs/ anew from the real pages'

demo: native
	cargo build --release --locked --package skewtap-cli
	target/release/skewtap demo

# A test that lacks a privilege writes its name, and what it needs, to the file that
# SKEWTAP_NOT_RUN names. The list closes the run, so that nothing is left out in silence.
test: export SKEWTAP_NOT_RUN := $(NOT_RUN)
test: native lab clients monitoring browser sdks network
	rm -f $(NOT_RUN)
	lab/cargo.sh test --release --locked
	cargo test --workspace --no-fail-fast --locked
	lab/browser.sh target/debug/skewtap
	lab/soak/collector.sh target/debug/skewtap 22 4
	cargo tree --package skewtap-cli --no-default-features --edges normal --prefix none >$(WITHOUT_LIBPCAP)
	! grep '^pcap v' $(WITHOUT_LIBPCAP)
	cargo build --package skewtap-cli --no-default-features --locked
	cargo test --package skewtap-capture --no-default-features --locked
	@if [[ -s $(NOT_RUN) ]]; then sort --unique $(NOT_RUN) | sed 's/^/not run: /'; fi

soak: export SKEWTAP_SOAK_SECONDS := 300
soak: native
	cargo test --package skewtap-cli --locked --test soak -- --nocapture
	cargo build --release --locked --package skewtap-cli
	lab/soak/collector.sh target/release/skewtap

fuzz: native
	fuzz/run.sh 10

bench: native
	lab/bench.sh

lint: native $(CARGO_DENY)
	lab/install.sh shellcheck
	shellcheck .ci/run fuzz/run.sh lab/*.sh lab/*/*.sh
	cargo fmt --all --check
	lab/cargo.sh fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --workspace --all-targets --no-default-features --locked -- -D warnings
	lab/cargo.sh clippy --release --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked
	$(CARGO_DENY) check --allow unused-wrapper bans licenses sources

screenshots: lab browser
	lab/install.sh fonts-dejavu-core pngquant
	cargo build --release --locked --package skewtap-cli
	lab/browser.sh target/release/skewtap docs/images

# What the build needs besides Rust.
native:
	@lab/install.sh gcc make pkg-config libpcap-dev

# The programs that read what is below dashboards/, and docker-compose.yml.
monitoring:
	@lab/install.sh docker-compose prometheus prometheus-alertmanager

# What tests make networks of their own with.
network:
	@lab/install.sh iproute2 nftables

# The OpenTelemetry SDKs that send to the collector in its tests, in target/sdks.
sdks:
	@lab/sdks.sh

# What lab/browser.sh runs.
browser:
	@lab/install.sh chromium curl nodejs npm

# The lab's programs, in target/lab/bin.
lab: native
	lab/build.sh

# The clients and servers that tests put before and behind skewtap. Java is taken if it is there.
clients:
	@lab/install.sh curl nginx-light nodejs python3-venv
	lab/python.sh
	lab/node.sh lab/clients target/lab/node

$(CARGO_DENY):
	cargo install --locked --debug --root target/tools --target-dir target/tools/build cargo-deny@$(CARGO_DENY_VERSION)
	rm -rf target/tools/build
