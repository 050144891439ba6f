"""A steady load for a long time: memory, latency, files and disk space must stay flat.

    python -m faults.soak [--minutes N]

Clients add, poll, complete, remove and fail items, and a reader reads the results, so that the
queue does not grow. At the end the counters of the store must equal a full scan, and the history of
one more client must be correct.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import quantiles

import queueber
from bench.resident import resident_mb
from faults.bystander import Bystander
from faults.flat import Sample, growth, judge, second_half
from faults.hostile.witness import Timer, Witness
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import ServerProcess, running_server

CLIENTS = 3
ITEMS, ITEM_BYTES = 20, 1000
BACKLOG = 5000
DEDUP_SECONDS = 10
_PAUSE_SECONDS = 0.02
_ROWS_SHOWN = 20


class Steady:
    """The loop of each client; it ends as many items as it adds."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def __call__(self, client: queueber.Client, timer: Timer) -> None:
        queue, random = client.queue("soak"), self._random
        contents = [random.randbytes(ITEM_BYTES) for _ in range(ITEMS)]
        keys = [random.randbytes(8).hex() for _ in range(ITEMS)]
        batch = f"minute {time.monotonic() // 60:.0f}"
        timer.call(lambda: queue.add(contents, key=keys, batch=batch))
        lease = timer.call(lambda: queue.poll(ITEMS, lease=60))
        completed, removed = lease.ids[::2], lease.ids[1::2]
        timer.call(lambda: queue.complete(completed, [b"done"] * len(completed), lease=lease.id))
        if random.random() < 0.2:
            timer.call(lambda: queue.fail(removed[:1], "not now", lease=lease.id, delay=0.5))
            del removed[:1]
        timer.call(lambda: queue.remove(removed, lease=lease.id))
        if random.random() < 0.05:
            for _ in queue.results("soak"):
                pass
        time.sleep(_PAUSE_SECONDS)


def prepare(address: str) -> None:
    with queueber.connect(address) as client:
        client.create_queue("soak", dedup_window=DEDUP_SECONDS)
        queue = client.queue("soak")
        queue.add([os.urandom(ITEM_BYTES) for _ in range(BACKLOG)])
        queue.ack_results("soak", 0)


def look(server: ServerProcess, started: float, took: Sequence[float]) -> Sample:
    assert server.process is not None
    sizes = _sizes(server.data_dir)
    cuts = quantiles(took, n=100) if len(took) > 1 else [0.0] * 99
    return Sample(
        time.monotonic() - started,
        resident_mb(server),
        len(took),
        1000 * cuts[49],
        1000 * cuts[98],
        len(sizes),
        sum(sizes) / 1e6,
        len(os.listdir(f"/proc/{server.process.pid}/fd")),
    )


def _sizes(folder: Path) -> list[int]:
    sizes = []
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # files may vanish during the scan
            if file.is_file():
                sizes.append(file.stat().st_size)
    return sizes


def run(seconds: float, every: float, seed: int) -> tuple[list[Sample], list[str]]:
    """The samples, and what is wrong with them."""
    samples: list[Sample] = []
    with running_server() as server:
        prepare(server.address)
        clients = [Witness(server.address, Steady(f"{seed} {at}")) for at in range(CLIENTS)]
        for client in clients:
            client.take()
        started = time.monotonic()
        with Bystander(server.address) as bystander:
            while time.monotonic() < started + seconds:
                time.sleep(every)
                took = [each for client in clients for each in client.take()]
                samples.append(look(server, started, took))
            for client in clients:
                client.stop()
        wrong = judge(samples) + bystander.wrong
        if code := server.stop():
            wrong.append(f"the server ended with {code}")
        with RocksStore(server.data_dir, read_only=True) as store:
            wrong += [str(each) for each in check_store(store)]
    return samples, wrong


def shown(sample: Sample) -> str:
    return (
        f"{sample.seconds:8.0f} {sample.memory_mb:8.0f} {sample.calls:8} {sample.p50_ms:8.1f} "
        f"{sample.p99_ms:8.1f} {sample.files:6} {sample.disk_mb:8.0f} {sample.descriptors:6}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between samples")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.minutes:g} minutes", flush=True)
    samples, wrong = run(60 * given.minutes, given.every, given.seed)
    print(f"{'seconds':>8} {'MB':>8} {'calls':>8} {'p50 ms':>8} {'p99 ms':>8} {'files':>6} "
          f"{'disk MB':>8} {'fds':>6}")  # fmt: skip
    for sample in samples[:: -(-len(samples) // _ROWS_SHOWN)]:
        print(shown(sample))
    half = second_half(samples)
    changes = [f"{name} {growth(half, name):+.1f}" for name in ("memory_mb", "p50_ms", "p99_ms")]
    print(f"over the second half: {', '.join(changes)}")
    print("\n".join(wrong) or "ok: flat and bounded, and the counters equal a full scan")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
