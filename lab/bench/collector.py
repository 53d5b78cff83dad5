"""Spans into the collector, beside Rotel, which keeps nothing; and its memory, API and start."""

import sqlite3
import statistics
import time
from contextlib import ExitStack

from figures import interleaved, run
from programs import get, metric

SPANS_A_BATCH = 512
STREAMS = 8

# The full store: how long ago its first exchange began, and on how many edges they are.
STORED_OVER_SECONDS = 7 * 24 * 3600
EDGES = 20


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
        since = int(time.time()) - STORED_OVER_SECONDS // 2
        for name, path in (
            ("list-newest", "/api/v1/exchanges?limit=50"),
            ("list-flagged", "/api/v1/exchanges?flagged=true&limit=50"),
            ("list-since", f"/api/v1/exchanges?since={since}&limit=50"),
            ("list-service", "/api/v1/exchanges?service=shop&limit=50"),
            ("overview-hour", "/"),
            ("overview-week", "/?since=168h"),
        ):
            times = []
            for _ in range(plan.queries):
                start = time.perf_counter()
                status, answer = get(collector.http_port, path)
                if status != 200:
                    raise RuntimeError(f"status {status} for {path}: {answer.decode()}")
                times.append((time.perf_counter() - start) * 1000)
            p95 = statistics.quantiles(times, n=20)[-1]
            figures.add(f"{name}-p95-of-{plan.stored_exchanges} skewtap", p95, "ms")


def _multiply(database, wanted):
    """Writes copies of the verdicts there are, and of their documents, until there are `wanted`;
    each with ids of its own, on edges in turn, begun at even distances over a week up to now, with
    gaps of all sizes, and each hundredth flagged with a cause. Then counts them as the collector
    does."""
    with sqlite3.connect(database) as store:
        there, last = store.execute("SELECT count(*), max(id) FROM verdict").fetchone()
        first_edge = store.execute("SELECT max(id) + 1 FROM edge").fetchone()[0]
        store.executemany(
            "INSERT INTO edge (id, client_service, server_service, route) VALUES (?, 'shop', ?, ?)",
            [(first_edge + n, f"stock-{n % 4}", f"/api/{n}/{{id}}") for n in range(EDGES)],
        )
        store.execute("CREATE TEMP TABLE place AS SELECT row_number() OVER () AS at, id FROM verdict")
        copy = (
            "WITH RECURSIVE count(number) AS "
            f"(SELECT 1 UNION ALL SELECT number + 1 FROM count LIMIT {wanted - there}) "
            "INSERT INTO {table} ({names}) SELECT {values} FROM count "
            f"JOIN place ON place.at = 1 + number % {there} "
            "JOIN {table} AS model ON model.id = place.id"
        )
        apart_ns = STORED_OVER_SECONDS * 1_000_000_000 // wanted
        own = {
            "id": f"{last} + number",
            "trace_id": "randomblob(16)",
            "client_span_id": "randomblob(8)",
            "edge": f"{first_edge} + number % {EDGES}",
            "started_ns": f"{time.time_ns()} - number * {apart_ns}",
            "stored_ns": str(time.time_ns()),
            "gap_ns": "500000 + (number * 7919 % 1000) * (number * 7919 % 1000) * 40",
            "flagged": "number % 100 = 0",
            "causes": "iif(number % 100 = 0, ',client_blind_sleep,', '')",
        }
        for table in ("verdict", "verdict_document"):
            columns = store.execute(f"SELECT name FROM pragma_table_info('{table}')")
            names = [name for (name,) in columns]
            values = [own.get(name, f"model.{name}") for name in names]
            store.execute(
                copy.format(table=table, names=", ".join(names), values=", ".join(values))
            )
        _count(store)
    store.close()


def _count(store):
    store.create_aggregate("bins", 2, Bins)
    store.execute("DELETE FROM gap_count")
    store.execute("DELETE FROM cause_count")
    for period in (60, 3600):
        start = f"started_ns / 1000000000 / {period} * {period}"
        store.execute(
            f"INSERT INTO gap_count SELECT {period}, {start} AS start, edge, "
            "count(*), sum(flagged), bins(gap_ns, flagged) FROM verdict GROUP BY start, edge"
        )
        store.execute(
            f"INSERT INTO cause_count SELECT {period}, {start} AS start, edge, "
            "'client_blind_sleep', count(*) FROM verdict WHERE causes <> '' GROUP BY start, edge"
        )


class Bins:
    """Counts by size class, as gap_bins.rs has them, of gaps that are not negative."""

    def __init__(self):
        self.counts = {}

    def step(self, gap_ns, flagged):
        size_class = _size_class(gap_ns)
        exchanges, before = self.counts.get(size_class, (0, 0))
        self.counts[size_class] = exchanges + 1, before + flagged

    def finalize(self):
        written, last = bytearray(), None
        for size_class, (exchanges, flagged) in sorted(self.counts.items()):
            # The first has a sign, which is positive here.
            step = size_class * 2 if last is None else size_class - last
            last = size_class
            for number in (step, exchanges, flagged):
                written += _variable_length(number)
        return bytes(written)


def _variable_length(number):
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return written


def _size_class(gap_ns):
    """As gap_bin.rs has it, for what is not negative."""
    us = gap_ns // 1000
    if us < 16:
        return us
    doublings = us.bit_length() - 5
    return 16 + doublings * 8 + (us >> (doublings + 1)) - 8


def send(starter, port, *options):
    """Sends spans; how many were acknowledged a second, and how many refused."""
    out = run(
        starter.bench_load, "send", "--to", f"127.0.0.1:{port}", "--streams", STREAMS,
        "--spans", SPANS_A_BATCH, *options,
    )  # fmt: skip
    acknowledged, refused, _, seconds = (float(word) for word in out.split())
    return {"rate": acknowledged / seconds, "refused": refused}
