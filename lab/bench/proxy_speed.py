"""Requests and bodies through the proxy, beside nginx and HAProxy."""

import re
import statistics
from contextlib import ExitStack

from figures import interleaved, ratio_by_round, run

# Kernel stamps and records, without what looks beyond the proxy's own sockets.
STAMPS_ONLY = ("--no-capture", "--no-queues")

UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def measure(starter, figures, plan):
    with ExitStack() as running:
        begin = running.enter_context
        origin = begin(starter.origin())
        sink = begin(starter.sink())
        contenders = {
            "direct": origin,
            "nginx": begin(starter.nginx(origin.port)),
            "haproxy": begin(starter.haproxy(origin.port)),
            "skewtap": begin(starter.proxy(origin.port, sink.port, *STAMPS_ONLY)),
        }
        for program in contenders.values():
            wrk(program.port, 32, 1)
        _requests(figures, plan, contenders)
        _latency(figures, plan, contenders)
    _http2(starter, figures, plan)
    _bodies(starter, figures, plan)


def _requests(figures, plan, contenders):
    def one(program):
        before = program.cpu_seconds()
        done = wrk(program.port, 32, plan.seconds)
        return done, (program.cpu_seconds() - before) / done["requests"] * 1e6

    samples = interleaved(plan.rounds, contenders, one)
    rates = {who: [done["rate"] for done, _ in all_of] for who, all_of in samples.items()}
    figures.compare("requests-32", "requests/s", rates, "skewtap", "haproxy")
    cpu = {who: [used for _, used in all_of] for who, all_of in samples.items() if who != "direct"}
    figures.compare("cpu-per-request-32", "µs", cpu, "skewtap", "haproxy")


def _latency(figures, plan, contenders):
    for connections in (1, 32):
        samples = interleaved(
            plan.rounds, contenders, lambda it: wrk(it.port, connections, plan.seconds)
        )
        for quantile in ("p50", "p99"):
            added = {
                who: [
                    done[quantile] - direct[quantile]
                    for done, direct in zip(all_of, samples["direct"], strict=True)
                ]
                for who, all_of in samples.items()
                if who != "direct"
            }
            figures.compare(f"added-{quantile}-{connections}", "ms", added, "skewtap", "haproxy")


def _http2(starter, figures, plan):
    with ExitStack() as running:
        begin = running.enter_context
        origin = begin(starter.origin())
        sink = begin(starter.sink())
        contenders = {
            "nginx": begin(starter.nginx_http2(origin.port)),
            "haproxy": begin(starter.haproxy(origin.port, "proto h2")),
            # The server behind all of them speaks HTTP/1.
            "skewtap": begin(
                starter.proxy(origin.port, sink.port, *STAMPS_ONLY, "--upstream-http", "1")
            ),
        }
        samples = interleaved(
            plan.rounds, contenders, lambda it: h2load(it.port, plan.http2_requests)
        )
        figures.compare("http2-requests-32", "requests/s", samples, "skewtap", "haproxy")


def _bodies(starter, figures, plan):
    with ExitStack() as running:
        begin = running.enter_context
        server = begin(starter.bodies())
        sink = begin(starter.sink())
        contenders = {
            "direct": server,
            "nginx": begin(starter.nginx(server.port)),
            "haproxy": begin(starter.haproxy(server.port)),
            "skewtap": begin(starter.proxy(server.port, sink.port, *STAMPS_ONLY)),
        }
        before = contenders["skewtap"].rss_mib()
        for way, name in (("get", "body-down"), ("put", "body-up")):

            def one(program, way=way):
                to = f"127.0.0.1:{program.port}"
                return 1 / float(run(starter.bench_load, way, "--to", to, "--bytes", 1 << 30))

            samples = interleaved(plan.rounds, contenders, one)
            figures.compare(name, "GiB/s", samples, "skewtap", "haproxy")
        grown = contenders["skewtap"].rss_mib(peak=True) - before
        figures.add("body-memory-growth skewtap", grown, "MiB")


def sources(starter, figures, plan):
    """What each source costs: requests/s with it to those without it."""
    base = ("--no-capture", "--no-queues", "--no-processes")
    pairs = {
        "kernel-stamps": (("--no-records", *base), ("--no-records", "--no-stamps", *base)),
        "records": (base, ("--no-records", *base)),
        "queues": (("--no-capture", "--no-processes"), base),
        "processes": (("--no-capture",), ("--no-capture", "--no-processes")),
        "capture": (("--no-queues", "--no-processes"), base),
        "everything": ((), ("--no-records", "--no-stamps", *base)),
    }
    with starter.origin() as origin, starter.sink() as sink:

        def one(options):
            # One at a time: the capture of another proxy would weigh on all traffic here.
            with starter.proxy(origin.port, sink.port, *options) as proxy:
                before = proxy.cpu_seconds()
                done = wrk(proxy.port, 32, plan.short_seconds)
                return done["rate"], (proxy.cpu_seconds() - before) / done["requests"] * 1e6

        for source, (on, off) in pairs.items():
            samples = interleaved(plan.rounds, {"on": on, "off": off}, one)
            rates = {state: [rate for rate, _ in all_of] for state, all_of in samples.items()}
            used = {state: [cpu for _, cpu in all_of] for state, all_of in samples.items()}
            name, rate = f"source-{source}", statistics.median(rates["on"])
            off_peer = f"{source}-off"
            ratio = ratio_by_round(rates["on"], rates["off"])
            figures.add(f"{name} requests", rate, "requests/s", off_peer, ratio)
            more = statistics.median(used["on"]) - statistics.median(used["off"])
            figures.add(f"{name} cpu", more, "µs/request")


def wrk(port, connections, seconds):
    """Requests as fast as answers come; times in milliseconds. Any failed request is an error."""
    out = run(
        "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", f"http://127.0.0.1:{port}/"
    )
    if re.search(r"Socket errors|Non-2xx", out):
        raise RuntimeError(f"requests failed on port {port}: {out}")
    return {
        "rate": float(_found(r"Requests/sec:\s+([\d.]+)", out)[0]),
        "requests": int(_found(r"(\d+) requests in", out)[0]),
        **{f"p{q}": _milliseconds(out, q) for q in (50, 99)},
    }


def h2load(port, requests):
    """Requests/s over HTTP/2, 32 connections with one request each under way. Any failed request
    is an error."""
    out = run(
        "h2load", f"-n{requests}", "-c32", "-m1", "-t1", f"http://127.0.0.1:{port}/"
    )
    succeeded = _found(r"(\d+) succeeded", out)
    if int(succeeded[0]) < requests or int(_found(r"(\d+) 2xx", out)[0]) < requests:
        raise RuntimeError(f"requests failed on port {port}: {out}")
    return float(_found(r"([\d.]+) req/s", out)[0])


def _milliseconds(out, quantile):
    value, unit = _found(rf"\s{quantile}%\s+([\d.]+)(us|ms|s)", out)
    return float(value) * UNITS[unit]


def _found(pattern, text):
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"no {pattern} in: {text}")
    return match.groups()
