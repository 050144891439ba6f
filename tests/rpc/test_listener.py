"""Where connections come in."""

import asyncio
import errno
import socket
from typing import Any

import pytest
from structlog.testing import capture_logs

from queueber.rpc.fair_turns import FairTurns
from queueber.rpc.server import Listener
from queueber.wire.stream import Stream
from tests.support.stream_sides import Reader


class Rig:
    def __init__(self) -> None:
        self.made: list[Stream] = []
        self.expected = 0
        self.full = asyncio.Event()
        self.listener = Listener(self._make, FairTurns(asyncio.get_running_loop()))

    def _make(self, scratch: memoryview) -> Stream:
        return Counted(self, scratch)

    async def until_made(self, count: int) -> None:
        self.expected = count
        async with asyncio.timeout(10):
            await self.full.wait()
        assert len(self.made) == count

    async def close(self) -> None:
        self.listener.close()
        for stream in self.made:
            stream.close()
        await asyncio.sleep(0.01)


class Counted(Stream):
    def __init__(self, rig: Rig, scratch: memoryview) -> None:
        super().__init__(Reader(), scratch)
        self._rig = rig

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._rig.made.append(self)
        if len(self._rig.made) == self._rig.expected:
            self._rig.full.set()


def test_everybody_who_comes_at_once_is_let_in() -> None:
    async def main() -> None:
        rig = Rig()
        address = await rig.listener.start("127.0.0.1", 0)
        callers = [socket.create_connection(address) for _ in range(50)]
        await rig.until_made(50)
        await rig.close()
        for caller in callers:
            caller.close()

    asyncio.run(main())


def test_nobody_is_let_in_once_it_is_closed() -> None:
    async def main() -> None:
        rig = Rig()
        address = await rig.listener.start("127.0.0.1", 0)
        with socket.create_connection(address):
            rig.listener.close()
            for _ in range(10):
                await asyncio.sleep(0)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
        assert rig.made == []

    asyncio.run(main())


def test_address_that_is_taken_is_refused() -> None:
    async def main() -> None:
        first, second = Rig(), Rig()
        address = await first.listener.start("127.0.0.1", 0)
        with pytest.raises(OSError, match="address already in use"):
            await second.listener.start(*address)
        await first.close()

    asyncio.run(main())


def test_too_many_open_files_are_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueber.rpc.server._RETRY_SECONDS", 0.001)
    accept = socket.socket.accept
    failures = [OSError(errno.EMFILE, "too many"), OSError(errno.ECONNABORTED, "gone")]

    def failing(listening: socket.socket) -> Any:
        if failures:
            raise failures.pop(0)
        return accept(listening)

    async def main() -> None:
        rig = Rig()
        address = await rig.listener.start("127.0.0.1", 0)
        monkeypatch.setattr(socket.socket, "accept", failing)
        with capture_logs() as logs, socket.create_connection(address):
            await rig.until_made(1)
        await rig.close()
        assert [(log["event"], log["error"]) for log in logs] == [
            ("connection_not_accepted", "Too many open files")
        ]

    asyncio.run(main())
