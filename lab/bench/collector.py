"""Spans into the collector, beside Rotel, which keeps nothing; and its memory, API and start."""

import sqlite3
import statistics
import time
from contextlib import ExitStack

from figures import interleaved, run
from programs import get, metric

SPANS_A_BATCH = 512
STREAMS = 8

MIB = 1 << 20


def measure(starter, figures, plan):
    _ingest(starter, figures, plan)
    _open_exchanges(starter, figures, plan)
    _full_store(starter, figures, plan)


def _ingest(starter, figures, plan):
    def one(program):
        return send(starter, program.port, "--seconds", plan.seconds)

    store = starter.folder / "ingest-store"
    with ExitStack() as running:
        contenders = {
            "rotel": running.enter_context(starter.rotel_agent()),
            "skewtap": running.enter_context(starter.collector(store)),
        }

        def settled(program):
            done = one(program)
            if program is contenders["skewtap"]:
                # What it has still to do must not weigh on the next in turn.
                _wait_until_idle(program)
            return done

        samples = interleaved(plan.rounds, contenders, settled)
        rates = {who: [done["rate"] for done in all_of] for who, all_of in samples.items()}
        figures.compare("ingest", "spans/s", rates, "skewtap", "rotel")
        refused = sum(done["refused"] for done in samples["skewtap"])
        figures.add("ingest-refused skewtap", refused, "spans")
        figures.add("ingest-peak-rss rotel", contenders["rotel"].rss_mib(peak=True), "MiB")
        figures.add("ingest-peak-rss skewtap", contenders["skewtap"].rss_mib(peak=True), "MiB")


def _wait_until_idle(program):
    """Waits until the collector uses less than a tenth of a core."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        before = program.cpu_seconds()
        time.sleep(0.5)
        if program.cpu_seconds() - before < 0.05:
            return


def _open_exchanges(starter, figures, plan):
    """Exchanges as the proxy ships them, whose other sides do not come."""
    recorded = starter.folder / "recorded.bin"
    _record(starter, recorded)
    store = starter.folder / "open-store"
    with starter.collector(store, "--settle", "5m") as collector:
        batches = -(-plan.open_exchanges // SPANS_A_BATCH)
        began = time.monotonic()
        send(starter, collector.port, "--recorded", recorded, "--batches", batches)
        deadline = began + 120
        while metric(collector.http_port, "skewtap_open_client_spans") < plan.open_exchanges:
            if time.monotonic() > deadline:
                raise RuntimeError("the collector does not hold the exchanges that were sent")
            time.sleep(0.2)
        taken = batches * SPANS_A_BATCH / (time.monotonic() - began)
        figures.add("exchanges-matched skewtap", taken, "exchanges/s")
        peak = collector.rss_mib(peak=True)
        figures.add(f"open-exchanges-{plan.open_exchanges}-peak-rss skewtap", peak, "MiB")


def _record(starter, file):
    """Has the proxy ship records of real exchanges, and keeps one request full of them."""
    with ExitStack() as running:
        begin = running.enter_context
        origin = begin(starter.origin())
        sink = begin(starter.sink(keep=file))
        proxy = begin(starter.proxy(origin.port, sink.port))
        run("wrk", "-t1", "-c32", "-d2s", f"http://127.0.0.1:{proxy.port}/api/items/4711")
        # Its end ships what is left.
        proxy.stop()
        sink.stop()


def _full_store(starter, figures, plan):
    """Time to start and to list with many exchanges in the store."""
    store = starter.folder / "full-store"
    with starter.collector(store, "--settle", "1s") as collector:
        send(starter, collector.port, "--batches", 8)
        deadline = time.monotonic() + 60
        while metric(collector.http_port, "skewtap_verdicts_total") < 8 * SPANS_A_BATCH / 2:
            if time.monotonic() > deadline:
                raise RuntimeError("the collector does not judge the spans that were sent")
            time.sleep(0.2)
    _multiply(store / "skewtap.db", plan.stored_exchanges)
    began = time.monotonic()
    with starter.collector(store) as collector:
        while get(collector.http_port, "/healthz")[0] != 200:
            time.sleep(0.01)
        took = time.monotonic() - began
        figures.add(f"start-with-{plan.stored_exchanges}-stored skewtap", took, "s")
        since = (time.time_ns() - plan.stored_exchanges * 500_000) // 1_000_000_000
        for name, query in (
            ("newest", "limit=50"),
            ("flagged", "flagged=true&limit=50"),
            ("since", f"since={since}&limit=50"),
            ("service", "service=shop&limit=50"),
        ):
            times = []
            for _ in range(plan.queries):
                start = time.perf_counter()
                status, answer = get(collector.http_port, f"/api/v1/exchanges?{query}")
                if status != 200:
                    raise RuntimeError(f"status {status} for {query}: {answer.decode()}")
                times.append((time.perf_counter() - start) * 1000)
            p95 = statistics.quantiles(times, n=20)[-1]
            figures.add(f"list-{name}-p95-of-{plan.stored_exchanges} skewtap", p95, "ms")


def _multiply(database, wanted):
    """Writes copies of the verdicts there are, and of their documents, until there are `wanted`;
    each with ids of its own, begun one millisecond after the other up to now, and each hundredth
    flagged."""
    with sqlite3.connect(database) as store:
        there, last = store.execute("SELECT count(*), max(id) FROM verdict").fetchone()
        store.execute("CREATE TEMP TABLE place AS SELECT row_number() OVER () AS at, id FROM verdict")
        copy = (
            "WITH RECURSIVE count(number) AS "
            f"(SELECT 1 UNION ALL SELECT number + 1 FROM count LIMIT {wanted - there}) "
            "INSERT INTO {table} ({names}) SELECT {values} FROM count "
            f"JOIN place ON place.at = 1 + number % {there} "
            "JOIN {table} AS model ON model.id = place.id"
        )
        own = {
            "id": f"{last} + number",
            "trace_id": "randomblob(16)",
            "client_span_id": "randomblob(8)",
            "started_ns": f"{time.time_ns()} - number * 1000000",
            "stored_ns": str(time.time_ns()),
            "flagged": "number % 100 = 0",
        }
        for table in ("verdict", "verdict_document"):
            columns = store.execute(f"SELECT name FROM pragma_table_info('{table}')")
            names = [name for (name,) in columns]
            values = [own.get(name, f"model.{name}") for name in names]
            store.execute(
                copy.format(table=table, names=", ".join(names), values=", ".join(values))
            )
    store.close()


def send(starter, port, *options):
    """Sends spans; how many were acknowledged a second, and how many refused."""
    out = run(
        starter.bench_load, "send", "--to", f"127.0.0.1:{port}", "--streams", STREAMS,
        "--spans", SPANS_A_BATCH, *options,
    )  # fmt: skip
    acknowledged, refused, _, seconds = (float(word) for word in out.split())
    return {"rate": acknowledged / seconds, "refused": refused}
