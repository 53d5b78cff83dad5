# syntax=docker/dockerfile:1.7

# Two images of one program:
#   docker build --tag skewtap .                            needs no capability
#   docker build --tag skewtap:capture --target capture .   captures packets and looks at processes
#
# The second exists because a user other than root gets a capability only from the file it runs, and
# such a file cannot be run at all where one of its capabilities is not granted.

FROM rust:1.95.0-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libcap2-bin libpcap-dev make pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY collector collector
COPY crates crates
COPY proxy proxy
ENV CARGO_PROFILE_RELEASE_STRIP=symbols
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package skewtap-cli \
    && install -D --target-directory=/out target/release/skewtap
# Packets; system calls of traced processes; and, where these belong to another user, their files.
ARG CAPABILITIES=cap_net_raw,cap_sys_ptrace,cap_dac_read_search
RUN install -D --target-directory=/out/capture /out/skewtap \
    && setcap "$CAPABILITIES+ep" /out/capture/skewtap

FROM debian:12.11-slim AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libpcap0.8 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 skewtap \
    && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin skewtap \
    && install --directory --owner=10001 --group=10001 /var/lib/skewtap
# Asks /healthz at the address in SKEWTAP_HEALTHZ: the collector's page or the proxy's admin address.
COPY --chmod=0755 <<'SCRIPT' /usr/local/bin/healthz
#!/bin/bash
set -eu
exec 3<>"/dev/tcp/${SKEWTAP_HEALTHZ%:*}/${SKEWTAP_HEALTHZ##*:}"
printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3
read -r _ status _ <&3
[[ $status == 200 ]]
SCRIPT
ENV SKEWTAP_STORE=/var/lib/skewtap
ENV SKEWTAP_HEALTHZ=127.0.0.1:4390
WORKDIR /var/lib/skewtap
VOLUME /var/lib/skewtap
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["healthz"]
ENTRYPOINT ["skewtap"]
CMD ["collector"]

FROM base AS capture
COPY --from=build /out/capture/skewtap /usr/local/bin/skewtap
ENV SKEWTAP_HEALTHZ=127.0.0.1:4391
CMD ["proxy"]

FROM base AS plain
COPY --from=build /out/skewtap /usr/local/bin/skewtap
