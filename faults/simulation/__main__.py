"""Runs simulated histories, or prints one of them step by step.

python -m faults.simulation --seed 17            print one history
python -m faults.simulation --histories 1000     that many, from a random seed on
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from random import SystemRandom

from faults.simulation.quiet import quiet_logs
from faults.simulation.small_limits import small_limits
from faults.simulation.telling import lines_of
from faults.simulation.world import Told, simulate

NIGHTLY_HISTORIES = 50_000

_CHUNK_HISTORIES = 50
_SEEDS = 1_000_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="print the history of this seed")
    parser.add_argument("--histories", type=int, default=NIGHTLY_HISTORIES, help="how many to run")
    parser.add_argument("--start", type=int, help="the first seed; by default a random one")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    given = parser.parse_args()
    if given.seed is not None:
        return tell(given.seed)
    start = SystemRandom().randrange(_SEEDS) if given.start is None else given.start
    return run_many(start, given.histories, given.processes)


def tell(seed: int) -> int:
    with quiet_logs(), small_limits():
        told = simulate(seed)
    for line in lines_of(told):
        print(line)
    return 1 if told.wrong else 0


def run_many(start: int, histories: int, processes: int) -> int:
    print(f"seeds from {start}", flush=True)
    began = time.monotonic()
    done = calls = crashes = 0
    for count, of_chunk, crashes_of_chunk, failed in _chunks(start, histories, processes):
        done, calls, crashes = done + count, calls + of_chunk, crashes + crashes_of_chunk
        a_minute = 60 * done / (time.monotonic() - began)
        progress = f"{done} of {histories} histories, {calls} calls, {crashes} crashes"
        end = "\r" if sys.stdout.isatty() and done < histories else "\n"
        if end == "\r" or done == histories or failed is not None:
            print(f"{progress}, {a_minute:.0f} histories a minute", end=end, flush=True)
        if failed is not None:
            print("\n".join([*failed.wrong, replay_command(failed.seed)]))
            return 1
    return 0


def replay_command(seed: int) -> str:
    return f"seed {seed}: replay it with `make simulate SEED={seed}`"


Chunk = tuple[int, int, int, Told | None]
"""Histories, calls, crashes, and the first history in which something is wrong."""


def _chunks(start: int, histories: int, processes: int) -> Iterator[Chunk]:
    stop = start + histories
    bounds = [(at, min(at + _CHUNK_HISTORIES, stop)) for at in range(start, stop, _CHUNK_HISTORIES)]
    if processes == 1:
        yield from (_chunk(*each) for each in bounds)
        return
    with ProcessPoolExecutor(processes) as pool:
        chunks = [pool.submit(_chunk, *each) for each in bounds]
        try:
            for chunk in chunks:
                yield chunk.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _chunk(start: int, stop: int) -> Chunk:
    calls = crashes = 0
    with quiet_logs(), small_limits():
        for seed in range(start, stop):
            told = simulate(seed)
            calls += len(told.history.calls)
            crashes += told.crashes
            if told.wrong:
                return seed - start + 1, calls, crashes, told
    return stop - start, calls, crashes, None


if __name__ == "__main__":
    sys.exit(main())
