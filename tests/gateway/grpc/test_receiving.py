"""Messages that come late: few are waited for, and the one that began first is cut first."""

import asyncio

import pytest

from queueber.errors import InvalidArgument, Unavailable
from queueber.gateway.grpc import receiving
from queueber.gateway.grpc.receiving import Receiving


class Call:
    """A call whose message comes when it is told to."""

    def __init__(self) -> None:
        self.message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes:
        return await self.message


def test_the_calls_that_are_late_for_longest_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "LATE_SECONDS", 0.02)
    monkeypatch.setattr(receiving, "LATE_MAX", 2)
    monkeypatch.setattr(receiving, "_WATCH_SECONDS", 0.01)

    async def run() -> None:
        found, end = Receiving(60_000), object()
        watching = asyncio.ensure_future(found.run())
        calls = [Call() for _ in range(5)]
        reading = [asyncio.ensure_future(found.first(each, end)) for each in calls]
        done, _ = await asyncio.wait(reading[:3], timeout=20)
        assert done == set(reading[:3])
        for each in reading[:3]:
            with pytest.raises(Unavailable, match="too long to send"):
                each.result()
        for call in calls[3:]:
            call.message.set_result(b"m")
        assert await asyncio.gather(*reading[3:]) == [b"m", b"m"]
        watching.cancel()

    asyncio.run(run())


def test_a_call_without_a_message_is_refused_and_one_that_is_gone_is_cancelled() -> None:
    async def run() -> None:
        found, end = Receiving(60_000), object()
        empty, gone = Call(), Call()
        empty.message.set_result(end)  # type: ignore[arg-type]  # as gRPC says it
        with pytest.raises(InvalidArgument, match="there is none"):
            await found.first(empty, end)
        reading = asyncio.ensure_future(found.first(gone, end))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(run())
