"""Measures skewtap beside nginx, HAProxy and Rotel, on loopback, in one run.

    python3 lab/bench/bench.py [PART...]

PART is one or more of: speed, sources, size, collector; all of them without. Every figure goes to
target/bench/results.json, a list of {name, value, unit, peer, ratio}. With BENCH_QUICK=1 the run
is short and its figures coarse. What it starts it stops by process id, also after Ctrl-C.
"""

import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import collector
import proxy_size
import proxy_speed
from figures import Figures
from programs import Starter

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "bench"


@dataclass(frozen=True)
class Plan:
    """How long and how much; times in seconds."""

    rounds: int = 5
    seconds: int = 4
    short_seconds: int = 3
    http2_requests: int = 80_000
    idle_seconds: int = 20
    idle_connections: int = 10_000
    open_exchanges: int = 100_000
    stored_exchanges: int = 1_000_000
    queries: int = 200


QUICK = Plan(
    rounds=3,
    seconds=2,
    short_seconds=1,
    http2_requests=20_000,
    idle_seconds=5,
    stored_exchanges=100_000,
    queries=60,
)

PARTS = {
    "speed": proxy_speed.measure,
    "sources": proxy_speed.sources,
    "size": proxy_size.measure,
    "collector": collector.measure,
}


def main():
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    # The usual way to end a run; each `with` then stops what it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = QUICK if os.environ.get("BENCH_QUICK") == "1" else Plan()
    folder = TARGET / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (rotel,) = TARGET.glob("venv/lib/python3*/site-packages/rotel/rotel-agent")
    starter = Starter(
        folder,
        ROOT / "target" / "release" / "skewtap",
        ROOT / "target" / "lab" / "bench" / "release" / "bench-load",
        rotel,
    )
    figures = Figures()
    began = time.monotonic()
    try:
        for name in wanted:
            print(f"{name}:", flush=True)
            PARTS[name](starter, figures, plan)
    except KeyboardInterrupt:
        print("stopped before the end", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if figures.all:
            figures.write(TARGET / "results.json")
    print(f"\nafter {time.monotonic() - began:.0f} s, in {TARGET / 'results.json'}:")
    figures.print_table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
