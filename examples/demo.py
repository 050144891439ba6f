"""The main job, end to end: fan work out, let a pool of workers do it, and prove what became of it.

A server runs in a temporary directory. Tasks are added as one batch; worker processes do them and
hand in a result for each. On the way one worker and then the server itself are killed with SIGKILL:
the items of the dead worker come back at once, and the server goes on where it was. A few tasks are
broken and fail every time: they end as dead letters. At the end the receipt of the batch accounts
for every task, and every result is compared with what it must be.

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
ROUNDS = 20
BATCH = "demo"
BROKEN_EVERY = 10_000
LOOK_SECONDS = 0.1

console = Console()


def do_task(item: queueber.WorkItem) -> bytes:
    """What a worker does with each task; what it raises fails the task."""
    if item.contents.startswith(b"broken"):
        raise ValueError("this task cannot be done")
    return digest(item.contents)


def digest(contents: bytes) -> bytes:
    """Something real, if small: stretch the contents."""
    for _ in range(ROUNDS):
        contents = hashlib.sha256(contents).digest()
    return contents


def work(address: str) -> None:
    # A short lease: answers that the crash of the server swallows come back when theirs runs out.
    queueber.Worker(
        address, queue="tasks", handler=do_task, concurrency=4, prefetch=200, lease=5, show=False
    ).run()


def start_worker(address: str) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(
        target=work, args=(address,), daemon=True
    )
    process.start()
    return process


def feed(queue: queueber.Queue, count: int, progress: Progress) -> dict[bytes, bytes]:
    """Add all tasks as one batch; returns their contents by id."""
    tasks: dict[bytes, bytes] = {}
    for start in progress.track(range(0, count, CHUNK), description="adding tasks"):
        contents = [
            (b"broken-%d" if number % BROKEN_EVERY == 1 else b"task-%d") % number
            for number in range(start, min(start + CHUNK, count))
        ]
        tasks.update(zip(queue.add(contents, batch=BATCH), contents, strict=True))
    return tasks


def watch(
    server: ServerProcess, queue: queueber.Queue, workers: list[BaseProcess], progress: Progress
) -> queueber.Receipt:
    """Wait for the batch; on the way, kill a worker and the server."""
    accidents = faults(server, workers)
    bar = progress.add_task("done or dead", total=None)
    while True:
        receipt = queue.wait_batch(BATCH, timeout=LOOK_SECONDS)
        progress.update(bar, completed=receipt.done + receipt.dead, total=receipt.added)
        if receipt.complete:
            return receipt
        if receipt.done * 3 > receipt.added:
            next(accidents, None)


def faults(server: ServerProcess, workers: list[BaseProcess]) -> Iterator[None]:
    workers[0].kill()
    console.print("[red]killed a worker[/red] while it held items; starting another")
    workers[0] = start_worker(server.address)
    yield
    server.kill()
    console.print("[red]killed the server[/red] (SIGKILL); starting it again on its data")
    server.start()
    yield


def show(queue: queueber.Queue, receipt: queueber.Receipt, tasks: dict[bytes, bytes]) -> bool:
    """The receipt, and whether every task ended as it should."""
    results = list(queue.results(reader="demo"))
    dead = {each.id: each.last_error for each in queue.peek_all("dead")}
    table = Table(title=f"Receipt of the batch {receipt.batch!r}")
    for column in ("added", "done", "dead", "live", "complete", "results"):
        table.add_column(column, justify="right")
    numbers = (receipt.added, receipt.done, receipt.dead, receipt.live)
    complete = "yes" if receipt.complete else "no"
    table.add_row(*(f"{number:,}" for number in numbers), complete, f"{len(results):,}")
    console.print(table)
    for error in list(dead.values())[:1]:
        console.print(f"last error of a dead letter: {error.splitlines()[0]}")
    broken = {i for i, contents in tasks.items() if contents.startswith(b"broken")}
    good = {i: digest(contents) for i, contents in tasks.items() if i not in broken}
    return (
        receipt.complete
        and set(dead) == broken
        and len(results) == len(good)
        and {each.id: each.result for each in results} == good
    )


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
        client.create_queue("tasks", attempts_max=3, backoff=[0.1, 0.5])
        queue = client.queue("tasks")
        tasks = feed(queue, arguments.tasks, progress)
        workers = [start_worker(server.address) for _ in range(arguments.workers)]
        try:
            receipt = watch(server, queue, workers, progress)
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
        progress.stop()
        is_right = show(queue, receipt, tasks)
        verdict = "every one is accounted for" if is_right else "some are lost"
        color = "green" if is_right else "red"
        seconds = time.monotonic() - started
        console.print(f"{arguments.tasks:,} tasks in {seconds:.1f} s: [{color}]{verdict}[/{color}]")
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
