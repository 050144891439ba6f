"""TLS handshakes of the server: bounded in time and in number, and their failures are told."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from structlog.testing import capture_logs

from queueber.rpc import handshakes
from queueber.rpc.buffers import MessageMemory
from queueber.rpc.fair_turns import FairTurns
from queueber.rpc.served_stream import ServedStream
from queueber.rpc.server import Listener
from queueber.tls import ServerTls, TlsOptions, client_context
from tests.support.certificates import HOSTS, Authority, new_authority
from tests.support.service_rig import new_session
from tests.support.stream_sides import Reader


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return new_authority(tmp_path)


class Rig:
    """A listener whose connections are read by nobody."""

    def __init__(self, authority: Authority) -> None:
        turns = FairTurns(asyncio.get_running_loop())
        memory = MessageMemory()

        def make(scratch: memoryview) -> ServedStream:
            stream = ServedStream(Reader(), scratch, new_session(), memory, turns)
            self.made.append(stream)
            return stream

        self.made: list[ServedStream] = []
        tls = ServerTls(authority.issue("server", *HOSTS), None, authority.ca_file)
        self.listener = Listener(make, turns, tls)

    async def start(self) -> tuple[str, int]:
        return await self.listener.start("127.0.0.1", 0)

    @property
    def names(self) -> list[str]:
        return [stream.session.certificate_name for stream in self.made]


async def connect(
    address: tuple[str, int], context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(*address, ssl=context, ssl_handshake_timeout=10)


def run(test: Callable[[], Awaitable[None]]) -> list[dict[str, Any]]:
    """The logs of the test."""

    async def main() -> None:
        async with asyncio.timeout(30):
            await test()

    with capture_logs() as logs:
        uvloop.run(main())
    return [dict(log) for log in logs]


def context_of(authority: Authority, **given: str) -> ssl.SSLContext:
    own = authority.issue("client", "c.example", **given)
    return client_context(TlsOptions(ca=authority.ca_file, certificate=own))


def test_session_knows_whom_the_certificate_of_its_connection_is_for(authority: Authority) -> None:
    async def test() -> None:
        rig = Rig(authority)
        address = await rig.start()
        for given in ({"common_name": "ocr-worker"}, {}):
            _, writer = await connect(address, context_of(authority, **given))
            while rig.names[-1] == "":  # noqa: ASYNC110  its handshake ends after ours
                await asyncio.sleep(0.001)
            writer.close()
        assert rig.names == ["ocr-worker", "c.example"]
        assert all(stream.session.address.startswith("127.0.0.1:") for stream in rig.made)
        rig.listener.close()

    assert run(test) == []


def test_caller_that_says_nothing_is_given_up_after_a_while(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKE_SECONDS_MAX", 0.1)

    async def test() -> None:
        rig = Rig(authority)
        reader, writer = await asyncio.open_connection(*await rig.start())
        assert await reader.read() == b""
        writer.close()
        await asyncio.sleep(0)
        rig.listener.close()

    [log] = run(test)
    assert (log["event"], log["count"], log["reason"]) == (
        "handshakes_failed",
        1,
        "it took longer than 0.1 s",
    )


def test_old_handshakes_make_room_for_new_ones(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", 3)
    monkeypatch.setattr(handshakes, "HANDSHAKE_SECONDS_CROWDED", 0.1)

    async def test() -> None:
        rig = Rig(authority)
        address = await rig.start()
        silent = [socket.create_connection(address) for _ in range(10)]

        _, writer = await connect(address, context_of(authority))

        writer.close()
        for each in silent:
            each.close()
        rig.listener.close()
        await asyncio.sleep(0.1)

    logs = run(test)
    assert logs[0]["event"] == "handshakes_failed"
    assert logs[0]["reason"] == "others waited for it"


def test_failures_are_counted_and_not_told_one_by_one(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "_REPORT_SECONDS", 0.3)

    async def test() -> None:
        rig = Rig(authority)
        address = await rig.start()
        for _ in range(20):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            assert await reader.read() == b""
            writer.close()
        await asyncio.sleep(0.7)
        rig.listener.close()

    logs = run(test)
    assert [log["event"] for log in logs] == ["handshakes_failed"] * len(logs)
    assert sum(log["count"] for log in logs) == 20
    assert 2 <= len(logs) <= 5
    assert {log["reason"] for log in logs} == {"http request"}


def test_caller_without_a_certificate_and_one_that_hangs_up_are_told_apart(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "_REPORT_SECONDS", 0.01)

    async def test() -> None:
        rig = Rig(authority)
        address = await rig.start()
        reader, writer = await connect(address, client_context(authority.trusted()))
        assert await reader.read() == b""
        writer.close()
        await asyncio.sleep(0.05)
        _, writer = await asyncio.open_connection(*address)
        writer.close()
        await asyncio.sleep(0.05)
        rig.listener.close()

    reasons = [log["reason"] for log in run(test)]
    assert reasons == ["peer did not return a certificate", "the caller hung up"]
