"""A collector that is killed again and again under load: nothing acknowledged may be lost, and
nothing doubled.

    PYTHONPATH=lab/bench python3 lab/soak/collector.py PROGRAM [SECONDS [KILL_EVERY]]

lab/soak/collector.sh builds what is needed and runs it.
"""

import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import run
from programs import Program, free_port, get, metric

ROOT = Path(__file__).resolve().parents[2]
SENDER = ROOT / "target" / "lab" / "bench" / "release" / "bench-load"

SPANS_A_REQUEST = 256
STREAMS = 8

# How long clients' spans are apart from their servers', so that a kill falls between many.
APART_SECONDS = 2

# How long the collector waits for what is missing of a call.
SETTLE_SECONDS = 1

# What the sender says of every call, in nanoseconds.
CLIENT_NS, SERVER_NS = 12_000_000, 10_000_000

# Counts batches that were acknowledged and cannot be read back.
UNREADABLE = "skewtap_unreadable_batches_total"

# How long everything that was sent may take to be judged once nothing more is sent.
JUDGED_WITHIN = 300


class Soak:
    def __init__(self, skewtap, folder):
        self.skewtap, self.folder = skewtap, folder
        self.store = folder / "store"
        self.grpc, self.http = free_port(), free_port()
        self.starts = 0

    def start(self):
        """The collector, always on the same store and the same ports."""
        self.starts += 1
        command = [self.skewtap, "collector", "--store", self.store, "--settle", f"{SETTLE_SECONDS}s"]
        command += ["--otlp-grpc", f"127.0.0.1:{self.grpc}", "--otlp-http", "127.0.0.1:0"]
        command += ["--http", f"127.0.0.1:{self.http}", "--retention-size", "1TiB"]
        return Program(self.folder, f"collector-{self.starts}", command, self.grpc)

    def sender(self, what, seconds, *options):
        command = [SENDER, what, "--to", f"127.0.0.1:{self.grpc}", "--streams", STREAMS]
        command += ["--spans", SPANS_A_REQUEST, "--seconds", seconds, *options]
        return [str(word) for word in command]

    def maximum_rate(self, seconds):
        """Spans it takes and judges a second when they come as fast as it acknowledges them."""
        with self.start() as collector:
            began = time.monotonic()
            acknowledged = int(run(*self.sender("send", seconds)).split()[0])
            self._wait_until_judged(acknowledged // 2)
            took = time.monotonic() - began - SETTLE_SECONDS
            collector.process.kill()
            collector.process.wait()
        # What counts begins with an empty store.
        shutil.rmtree(self.store)
        return acknowledged / took

    def run(self, rate, seconds, kill_every):
        """Spans acknowledged, and how often the collector was killed meanwhile."""
        collector, kills = self.start(), 0
        options = ("--rate", int(rate), "--apart", APART_SECONDS)
        sending = subprocess.Popen(
            self.sender("persist", seconds, *options),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    out, _ = sending.communicate(timeout=kill_every)
                    break
                except subprocess.TimeoutExpired:
                    collector.process.kill()
                    collector.process.wait()
                    kills += 1
                    collector = self.start()
            if sending.returncode != 0:
                raise RuntimeError(f"the sender gave up: {collector.log.read_text()}")
            acknowledged, refused, _, took, broken = out.split()
            print(
                f"  {acknowledged} spans acknowledged in {float(took):.0f} s, {kills} kills, "
                f"{broken} spans in requests that broke off and {refused} in refused ones",
                flush=True,
            )
            # Once more, with everything sent: what is open then is judged by the next start.
            collector.process.kill()
            collector.process.wait()
            collector = self.start()
            self._wait_until_judged(int(acknowledged) // 2)
        finally:
            if sending.poll() is None:
                sending.send_signal(signal.SIGTERM)
                sending.wait()
            collector.stop()
        return int(acknowledged), kills + 1

    def _wait_until_judged(self, verdicts):
        deadline = time.monotonic() + JUDGED_WITHIN
        with sqlite3.connect(f"file:{self.store}/skewtap.db?mode=ro", uri=True) as store:
            while store.execute("SELECT count(*) FROM verdict").fetchone()[0] < verdicts:
                if time.monotonic() > deadline:
                    print("  not everything is judged in time", flush=True)
                    return
                time.sleep(0.1)
        if get(self.http, "/healthz")[0] != 200 or metric(self.http, UNREADABLE) > 0:
            raise RuntimeError("the collector is not well")

    def faults(self, acknowledged):
        """What is wrong with the store, in words."""
        with sqlite3.connect(self.store / "skewtap.db") as store:

            def number(sql, *values):
                return store.execute(sql, values).fetchone()[0] or 0

            verdicts = number("SELECT count(*) FROM verdict")
            spans = number("SELECT sum((client_ns NOT NULL) + (server_ns NOT NULL)) FROM verdict")
            right = "client_ns = ? AND server_ns = ? AND gap_ns = ?"
            wrong = verdicts - number(
                f"SELECT count(*) FROM verdict WHERE {right}",
                CLIENT_NS, SERVER_NS, CLIENT_NS - SERVER_NS,
            )  # fmt: skip
            documents = number("SELECT count(*) FROM verdict_document")
            counted = number("SELECT sum(exchanges) FROM gap_count WHERE period_s = 60")
            damage = number("PRAGMA quick_check")
        store.close()
        print(f"  {spans} spans stored in {verdicts} verdicts", flush=True)
        checks = [
            (spans == acknowledged, f"{acknowledged} spans acknowledged, {spans} stored"),
            (verdicts == acknowledged // 2, f"{acknowledged // 2} calls sent, {verdicts} verdicts"),
            (wrong == 0, f"{wrong} verdicts do not say what was sent"),
            (documents == verdicts, f"{verdicts} verdicts, {documents} documents"),
            (counted == verdicts, f"{verdicts} verdicts, {counted} counted for plots"),
            (damage == "ok", f"the store is damaged: {damage}"),
        ]
        return [words for fine, words in checks if not fine]


def main():
    program, *numbers = sys.argv[1:]
    seconds, kill_every, *_ = [int(number) for number in numbers] + [600, 20][len(numbers) :]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Beside the build, not in /tmp, which may be memory: a long run stores gigabytes.
    target = ROOT / "target" / "soak"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as folder:
        soak = Soak(Path(program).resolve(), Path(folder))
        rate = soak.maximum_rate(seconds=2 if seconds < 60 else 10) / 2
        print(f"collector soak: {rate:.0f} spans/s for {seconds} s, kill -9 every {kill_every} s")
        acknowledged, kills = soak.run(rate, seconds, kill_every)
        faults = soak.faults(acknowledged)
        # A start takes a moment each time.
        if kills < seconds // kill_every // 2:
            faults.append(f"only {kills} kills")
    for fault in faults:
        print(f"  FAULT: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
