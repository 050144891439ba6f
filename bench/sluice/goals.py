"""The goals, each measured on a server and a gateway of their own."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import grpc

from bench.sluice.disk import DiskWatch
from bench.sluice.generator import Measured, run
from bench.sluice.places import Running, running, shown_seconds, start_seconds
from queueber.config import split_address
from queueber.gateway.grpc import sluice_pb2 as wire
from tests.support.grpc import Sluice

RATE = 5_000
"""Messages a second."""
PAYLOAD_BYTES = 512
BATCH = 10
P99_MS = 10
SETTLED_SECONDS = 1.0
"""After which the slow consumer's windows are full: grpcio reads some megabytes ahead."""


@dataclass(slots=True)
class Goal:
    name: str
    wanted: str
    found: str
    is_held: bool


def publish_body() -> bytes:
    return wire.PublishRequest(topic="goals", payload=os.urandom(PAYLOAD_BYTES)).SerializeToString()


def batch_body() -> bytes:
    messages = [wire.BatchMessage(payload=os.urandom(PAYLOAD_BYTES)) for _ in range(BATCH)]
    return wire.BatchPublishRequest(topic="goals", messages=messages).SerializeToString()


def paced(of: Running, seconds: float, *, batch: bool, rate: float = RATE) -> Measured:
    """Messages at that rate, one a call or in small batches."""
    at = split_address(of.address)
    if batch:
        return run(at, b"BatchPublish", batch_body, rate=rate / BATCH, seconds=seconds)
    return run(at, b"Publish", publish_body, rate=rate, seconds=seconds)


@dataclass(slots=True)
class Paced:
    """One run, and what the disk did meanwhile."""

    measured: Measured
    messages: int
    """Of a call."""
    disk_ms: float

    @property
    def rate(self) -> float:
        return self.measured.calls_per_second * self.messages

    @property
    def p99_ms(self) -> float:
        return self.measured.ms(0.99)


def paced_runs(
    of: Running, folder: Path, seconds: float, runs: int, *, batch: bool
) -> tuple[str, bool]:
    """What several runs have in the middle, and whether that holds the goal."""
    found = []
    for _ in range(runs):
        with DiskWatch(folder) as disk:
            measured = paced(of, seconds, batch=batch)
        found.append(Paced(measured, BATCH if batch else 1, disk.longest_ms))
    return shown(found), is_fast(found)


def middle(found: list[Paced], of: Callable[[Paced], float]) -> float:
    return median(of(each) for each in found)


def shown(found: list[Paced]) -> str:
    ordered = sorted(each.p99_ms for each in found)
    fast = sum(each < P99_MS for each in ordered)
    failed = sum(each.measured.failed for each in found)
    longest = ", ".join(f"{each.disk_ms:.0f}" for each in sorted(found, key=lambda e: e.p99_ms))
    return (
        f"{middle(found, lambda each: each.rate):,.0f} messages/s, "
        f"p50 {middle(found, lambda each: each.measured.ms(0.5)):.1f} ms, "
        f"p99 {median(ordered):.1f} ms, the medians of {len(found)} runs; p99 below {P99_MS} ms in "
        f"{fast} of them ({', '.join(f'{each:.1f}' for each in ordered)}; longest sync of another "
        f"file {longest} ms)" + f", {failed} failed" * bool(failed)
    )


def is_fast(found: list[Paced]) -> bool:
    return (
        middle(found, lambda each: each.rate) >= 0.98 * RATE
        and middle(found, lambda each: each.p99_ms) < P99_MS
        and not any(each.measured.failed for each in found)
    )


class SlowReader:
    """Reads one message a second, with credits for all there are."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        said = [
            wire.SubscribeUpstream(
                init=wire.SubscriptionInit(
                    topic="goals", initial_position=wire.InitialPosition.EARLIEST
                )
            ),
            wire.SubscribeUpstream(credit=wire.CreditGrant(credits=2**32 - 1)),
        ]
        call: Any = self._channel.stream_stream(
            "/sluice.v1.Sluice/Subscribe",
            request_serializer=wire.SubscribeUpstream.SerializeToString,
            response_deserializer=wire.SubscribeDownstream.FromString,
        )
        self._call = call(iter(said))
        self._is_over = threading.Event()
        self.read = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for _ in self._call:
                self.read += 1
                if self._is_over.wait(1.0):
                    return
        except grpc.RpcError:
            pass

    def close(self) -> None:
        self._is_over.set()
        self._call.cancel()
        self._channel.close()
        self._thread.join(10)


def goals(folder: Path, seconds: float, runs: int, backlog: int) -> list[Goal]:
    gateway, both = start_seconds(folder, runs)
    found = [
        Goal(f"start of {name}", "< 1 s", shown_seconds(each), median(each) < 1)
        for name, each in (("the gateway", gateway), ("the server, then the gateway", both))
    ]
    wanted = f"{RATE:,} messages/s, p99 < {P99_MS} ms"
    kinds = (("Publish", False), (f"BatchPublish of {BATCH}", True))
    with running(folder) as of:
        paced(of, 1.0, batch=False, rate=500)  # warms it up
        for name, batch in kinds:
            found.append(Goal(name, wanted, *paced_runs(of, folder, seconds, runs, batch=batch)))
        slow = SlowReader(of.address)
        time.sleep(SETTLED_SECONDS)
        for name, batch in kinds:
            text, is_held = paced_runs(of, folder, seconds, runs, batch=batch)
            beside = f"{name} beside a consumer of 1 message/s"
            found.append(Goal(beside, wanted, f"{text}; it has read {slow.read}", is_held))
        fill(of.address, backlog)
        text = (
            f"{of.first_mb:.0f} MB once it had started, {of.highest_mb:.0f} MB at most in all "
            f"these runs, with {backlog:,} messages more behind"
        )
        is_held = of.highest_mb - of.first_mb < 100
        found.append(Goal("memory of the gateway", "< 100 MB more", text, is_held))
        slow.close()
    return found


def fill(address: str, count: int) -> None:
    """So many messages that nobody reads."""
    message = wire.BatchMessage(payload=os.urandom(PAYLOAD_BYTES))
    request = wire.BatchPublishRequest(topic="goals", messages=[message] * 1000)
    with Sluice(address) as sluice:
        for _ in range(count // 1000):
            sluice._call("BatchPublish", request, wire.BatchPublishResponse)
