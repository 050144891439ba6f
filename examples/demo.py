"""The main job, end to end: feed a queue, let a pool of workers drain it, lose nothing on the way.

A server runs in a temporary directory. Worker processes lease tasks, do them, add what came out to
a second queue and remove the tasks. On the way one worker and then the server itself are killed
with SIGKILL; the items of the dead worker come back when its lease runs out, and the server goes on
where it was. At the end every task has its result, and the server's figures prove the sum.

Run it with `make demo`, or `python -m examples.demo --help`.
"""

import argparse
import hashlib
import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import queueber
from queueber.testing import ServerProcess, running_server

CHUNK = 500
LEASE_SECONDS = 3.0
ROUNDS = 20

console = Console()


def do_task(contents: bytes) -> bytes:
    """Something real, if small: stretch the contents into a digest."""
    digest = contents
    for _ in range(ROUNDS):
        digest = hashlib.sha256(digest).digest()
    return digest


def work(address: str) -> None:
    """Lease, do, hand in, remove, for ever: the loop of a worker process."""
    with queueber.connect(address, connect_timeout=30) as client:
        tasks, results = client.queue("tasks"), client.queue("results")
        while True:
            lease = tasks.poll(100, lease=LEASE_SECONDS, wait=1)
            if not lease:
                continue
            try:
                results.add([item.contents + b"=" + do_task(item.contents) for item in lease])
                lease.remove()
            except queueber.OutcomeUnknown:
                # The server went away in the middle. The lease decides: what was not removed comes
                # back, and a result that is handed in twice is the same one.
                continue


def start_worker(address: str) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(address,), daemon=True
    )
    process.start()
    return process


def feed(queue: queueber.Queue, count: int, progress: Progress) -> None:
    for start in progress.track(range(0, count, CHUNK), description="adding tasks"):
        queue.add([b"task-%d" % number for number in range(start, min(start + CHUNK, count))])


def collect(
    server: ServerProcess, client: queueber.Client, workers: list[BaseProcess], count: int,
    progress: Progress,
) -> dict[bytes, bytes]:  # fmt: skip
    """Drain the results; on the way, kill a worker and the server."""
    accidents = faults(server, workers)
    results: dict[bytes, bytes] = {}
    bar = progress.add_task("collecting results", total=count)
    while len(results) < count:
        lease = client.queue("results").poll(1000, wait=1)
        for item in lease:
            name, _, digest = item.contents.partition(b"=")
            results[name] = digest
        if lease:
            lease.remove()
        progress.update(bar, completed=len(results))
        if len(results) * 3 > count:
            next(accidents, None)
    return results


def faults(server: ServerProcess, workers: list[BaseProcess]) -> Iterator[None]:
    workers[0].kill()
    console.print("[red]killed a worker[/red] while it held a lease; starting another")
    workers[0] = start_worker(server.address)
    yield
    server.kill()
    console.print("[red]killed the server[/red] (SIGKILL); starting it again on its data")
    server.start()
    yield


def show(client: queueber.Client, results: dict[bytes, bytes], count: int, seconds: float) -> bool:
    expected = {b"task-%d" % number for number in range(count)}
    is_right = set(results) == expected and all(
        digest == do_task(name) for name, digest in results.items()
    )
    table = Table(title="What the server says")
    for column in ("queue", "added", "polled", "given back", "removed", "left"):
        table.add_column(column, justify="left" if column == "queue" else "right")
    for stats in client.queues():
        left = stats.ready + stats.delayed + stats.in_progress
        row = (
            stats.added_total,
            stats.polled_total,
            stats.expired_total,
            stats.removed_total,
            left,
        )
        table.add_row(stats.name, *(f"{number:,}" for number in row))
    console.print(table)
    verdict = "[green]each has its result[/green]" if is_right else "[red]some are lost[/red]"
    console.print(f"{count:,} tasks in {seconds:.1f} s: {verdict}")
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=50_000, help="how many (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    arguments = parser.parse_args()
    columns = [TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn()]
    with (
        running_server() as server,
        queueber.connect(server.address, retry_timeout=60) as client,
        Progress(*columns, console=console) as progress,
    ):
        console.print(f"a server listens on {server.address}, data in {server.data_dir}")
        started = time.monotonic()
        feed(client.queue("tasks"), arguments.tasks, progress)
        workers = [start_worker(server.address) for _ in range(arguments.workers)]
        try:
            results = collect(server, client, workers, arguments.tasks, progress)
            wait_for_removes(client.queue("tasks"))
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
        progress.stop()
        is_right = show(client, results, arguments.tasks, time.monotonic() - started)
    return 0 if is_right else 1


def wait_for_removes(tasks: queueber.Queue) -> None:
    """The last removes follow the last results; leases of the dead run out and are done again."""
    while (stats := tasks.stats()).ready + stats.in_progress:
        time.sleep(0.05)


if __name__ == "__main__":
    raise SystemExit(main())
