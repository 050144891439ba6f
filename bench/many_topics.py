"""A million topics: the time to create them, the start of a server that has them, its memory."""

import random
import time
from collections.abc import Iterator

from bench.measure import bench_parser, progress, scratch, start_report
from bench.resident import resident_mb
from queueber import Client, connect
from queueber.testing import running_server

_DESCRIPTION = """Create --topics topics through one connection, each with its first message of 100
B, 1,000 topics a call, synced. Stop the server and start it again. Publish a message to each of
--random topics, chosen at random, 100 topics a call and then one topic a call. Measure the times,
and the resident memory after each."""

_CALL_TOPICS = 1000
_RANDOM_TOPICS = 100
_PAYLOAD = b"x" * 100

_START_SECONDS_MAX = 2.0
_RESIDENT_MB_MAX = 300.0


def topic_name(number: int) -> str:
    return f"tenant-{number % 1000}/events-{number}"


def create_topics(client: Client, topics: int) -> None:
    with progress() as bar:
        for first in bar.track(range(0, topics, _CALL_TOPICS), description=f"{topics:,} topics"):
            last = min(first + _CALL_TOPICS, topics)
            client.publish({topic_name(each): [_PAYLOAD] for each in range(first, last)})


def _publish(client: Client, names: Iterator[str], calls: int, topics: int) -> float:
    """Messages a second."""
    started = time.perf_counter()
    for _ in range(calls):
        client.publish({next(names): [_PAYLOAD] for _ in range(topics)})
    return calls * topics / (time.perf_counter() - started)


def _random_names(topics: int) -> Iterator[str]:
    chosen = random.Random(1)
    while True:
        yield topic_name(chosen.randrange(topics))


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--topics", type=int, default=1_000_000, help="that there are")
    parser.add_argument("--random", type=int, default=20_000, help="messages to random topics")
    arguments = parser.parse_args()
    names = _random_names(arguments.topics)
    with scratch(arguments.dir) as folder:
        report = start_report("A server with many topics", arguments, folder)
        with running_server(data_dir=folder / "data") as server:
            started = time.perf_counter()
            with connect(server.address) as client:
                create_topics(client, arguments.topics)
            create_seconds = time.perf_counter() - started
            created_mb = resident_mb(server)
            server.stop()
            started = time.perf_counter()
            server.start()
            start_seconds = time.perf_counter() - started
            started_mb = resident_mb(server)
            with connect(server.address) as client:
                calls = arguments.random // _RANDOM_TOPICS
                many = _publish(client, names, calls, _RANDOM_TOPICS)
                single = _publish(client, names, min(2000, arguments.random), 1)
                listed = sum(
                    1 for _ in zip(client.topics(prefix="tenant-7/"), range(100), strict=False)
                )
            highest_mb = resident_mb(server, "VmHWM")
        disk_mb = sum(file.stat().st_size for file in (folder / "data").iterdir()) / 1e6
    seconds, memory = f"{_START_SECONDS_MAX:g}", f"{_RESIDENT_MB_MAX:g}"
    figures = (
        ("create, with a message each: topics/s", arguments.topics / create_seconds, ""),
        ("resident after that, MB", created_mb, memory),
        ("start to listening, s", start_seconds, seconds),
        ("resident after the start, MB", started_mb, memory),
        ("messages/s to random topics, 100 a call", many, ""),
        ("messages/s to random topics, 1 a call, one caller", single, ""),
        ("resident at most since the start, MB", highest_mb, memory),
        ("topics of one tenant listed", float(listed), ""),
        ("store on disk, MB", disk_mb, ""),
    )
    report.table(
        "Many topics",
        [{"figure": name, "measured": value, "limit": limit} for name, value, limit in figures],
    )
    report.verdict(
        f"the server listens within {seconds} s: {start_seconds:.1f} s",
        is_met=start_seconds <= _START_SECONDS_MAX,
    )
    worst_mb = max(created_mb, highest_mb)
    report.verdict(
        f"its memory stays below {memory} MB: {worst_mb:.0f} MB", is_met=worst_mb < _RESIDENT_MB_MAX
    )


if __name__ == "__main__":
    main()
