"""A large store: how soon a server on it answers, and how much memory it takes."""

import re
import time
from pathlib import Path

from bench.engine import engine_queue
from bench.measure import Shape, bench_parser, progress, scratch, start_report
from queueber import Queue, connect
from queueber.testing import ServerProcess, running_server

_DESCRIPTION = """Fill a store with --items items of 100 B, 1,000 a call, unsynced; start a server
on it; measure the time until it listens and until a first poll through RPC is answered, and its
resident memory then and after polling, removing and adding --churn items."""

_QUEUE = "bench"
_CONTENT_BYTES = 100
_FILL_ITEMS = 1000
_CALL_ITEMS = 100

_OPEN_SECONDS_MAX = 10.0
_RESIDENT_MB_MAX = 500.0


def _fill(folder: Path, items: int) -> None:
    contents = Shape(_FILL_ITEMS, _CONTENT_BYTES).contents()
    with engine_queue(folder, _QUEUE) as queue, progress() as bar:
        for _ in bar.track(range(items // _FILL_ITEMS), description=f"fill with {items:,} items"):
            queue.add(contents)


def _resident_mb(server: ServerProcess, field: str = "VmRSS") -> float:
    """From the kernel's own account; `VmHWM` is the highest it has been."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def _churn(queue: Queue, items: int) -> None:
    contents = Shape(_CALL_ITEMS, _CONTENT_BYTES).contents()
    with progress() as bar:
        for _ in bar.track(range(items // _CALL_ITEMS), description="poll, remove and add"):
            queue.poll(_CALL_ITEMS).remove()
            queue.add(contents)


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--items", type=int, default=10_000_000, help="in the store")
    parser.add_argument("--churn", type=int, default=100_000, help="polled, removed and added")
    arguments = parser.parse_args()
    with scratch(arguments.dir) as folder:
        report = start_report("A server on a large store", arguments, folder)
        data_dir = folder / "data"
        started = time.perf_counter()
        _fill(data_dir, arguments.items)
        fill_seconds = time.perf_counter() - started
        disk_mb = sum(file.stat().st_size for file in data_dir.iterdir()) / 1e6

        started = time.perf_counter()
        with running_server(data_dir=data_dir) as server:
            listen_seconds = time.perf_counter() - started
            with connect(server.address) as client:
                queue = client.queue(_QUEUE)
                assert queue.poll(_CALL_ITEMS)
                poll_seconds = time.perf_counter() - started
                resident_mb = _resident_mb(server)
                _churn(queue, arguments.churn)
                churned_mb = _resident_mb(server)
            highest_mb = _resident_mb(server, "VmHWM")
    limit_s, limit_mb = f"{_OPEN_SECONDS_MAX:g} s", f"below {_RESIDENT_MB_MAX:g} MB"
    report.table(
        "Large store",
        [
            {"figure": "fill, s", "measured": fill_seconds, "limit": ""},
            {"figure": "store on disk, MB", "measured": disk_mb, "limit": ""},
            {"figure": "start to listening, s", "measured": listen_seconds, "limit": limit_s},
            {"figure": "start to first poll, s", "measured": poll_seconds, "limit": limit_s},
            {"figure": "resident at first poll, MB", "measured": resident_mb, "limit": limit_mb},
            {"figure": "resident after churn, MB", "measured": churned_mb, "limit": limit_mb},
            {"figure": "resident at most, MB", "measured": highest_mb, "limit": limit_mb},
        ],
    )
    report.verdict("the store opens in seconds", is_met=poll_seconds <= _OPEN_SECONDS_MAX)
    report.verdict("memory stays below 500 MB", is_met=highest_mb < _RESIDENT_MB_MAX)
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
