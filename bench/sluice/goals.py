"""The goals, each measured on a server and a gateway of their own."""

import compileall
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

import queueber
from bench.sluice.disk import DiskWatch
from bench.sluice.generator import Measured, run
from faults.http.watch import Usage
from queueber.config import split_address
from queueber.gateway.grpc import sluice_pb2 as wire
from queueber.testing import running_server
from tests.support.grpc import Sluice, running_grpc, wait_listening
from tests.support.http import GatewayProcess

RATE = 5_000
"""Messages a second."""
PAYLOAD_BYTES = 512
BATCH = 10
SETTLED_SECONDS = 1.0
"""After which the slow consumer's windows are full: grpcio reads some megabytes ahead."""


@dataclass(slots=True)
class Goal:
    name: str
    wanted: str
    found: str
    is_held: bool


@dataclass(slots=True)
class Running:
    gateway: GatewayProcess
    address: str
    started_seconds: float

    @property
    def megabytes(self) -> float:
        return Usage(self.gateway.process.pid).megabytes


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    # As an installed package is: else it would be compiled at each start, if Python may not write.
    compileall.compile_dir(Path(queueber.__file__).parent, quiet=1)
    with running_server(data_dir=folder / "data") as server:
        begun = time.perf_counter()
        with running_grpc(server.address) as (gateway, address):
            wait_listening(address)  # grpcio would wait for a second before it tries again
            with Sluice(address) as sluice:
                sluice.topics()
                yield Running(gateway, address, time.perf_counter() - begun)


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


def shown(measured: Measured, messages: int, disk: DiskWatch) -> str:
    return (
        f"{measured.calls_per_second * messages:,.0f} messages/s, p50 {measured.ms(0.5):.1f} ms, "
        f"p99 {measured.ms(0.99):.1f} ms"
        + (f", {measured.failed} failed" * bool(measured.failed))
        + f"; longest sync of another file {disk.longest_ms:.0f} ms"
    )


def is_fast(measured: Measured, messages: int) -> bool:
    rate = measured.calls_per_second * messages
    return rate >= 0.98 * RATE and measured.ms(0.99) < 10 and not measured.failed


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


def goals(folder: Path, seconds: float, backlog: int) -> list[Goal]:
    found: list[Goal] = []
    with running(folder) as of:
        start = of.started_seconds
        found.append(Goal("start until the first answer", "< 1 s", f"{start:.2f} s", start < 1))
        paced(of, 1.0, batch=False, rate=500)  # warms it up
        for name, batch in (("Publish", False), (f"BatchPublish of {BATCH}", True)):
            with DiskWatch(folder) as disk:
                measured, messages = paced(of, seconds, batch=batch), BATCH if batch else 1
            goal, text = f"{RATE:,} messages/s, p99 < 10 ms", shown(measured, messages, disk)
            found.append(Goal(name, goal, text, is_fast(measured, messages)))
        slow = SlowReader(of.address)
        time.sleep(SETTLED_SECONDS)
        with DiskWatch(folder) as disk:
            beside = paced(of, seconds, batch=True)
        text = f"{shown(beside, BATCH, disk)}; it read {slow.read}"
        goal = "as without it"
        found.append(Goal("a consumer of 1 message/s beside", goal, text, is_fast(beside, BATCH)))
        before = of.megabytes
        _fill(of, backlog)
        text = f"{before:.0f} MB, {of.megabytes:.0f} MB with {backlog:,} messages more behind"
        grown = of.megabytes - before
        found.append(Goal("memory under a backlog", "< 100 MB more", text, grown < 100))
        slow.close()
    return found


def _fill(of: Running, count: int) -> None:
    message = wire.BatchMessage(payload=os.urandom(PAYLOAD_BYTES))
    request = wire.BatchPublishRequest(topic="goals", messages=[message] * 1000)
    with Sluice(of.address) as sluice:
        for _ in range(count // 1000):
            sluice._call("BatchPublish", request, wire.BatchPublishResponse)
