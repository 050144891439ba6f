"""Staging a file has four chunks under way, in the blocking and in the awaited client."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Timer
from typing import Any

import pytest

import queueber
from queueber import LoadInfo, LoadRef, LoadState, PartRef
from queueber.limits import LOAD_CHUNK_BYTES

INFO = LoadInfo(LoadRef("l"), LoadState.STAGING, "", 0, 0, 0, 0, 1, 0, b"", 0, 0, 0, "", b"")
PART = PartRef(0, "a")
CHUNKS = 10


class SlowCalls:
    """Answers each chunk a moment later; the one at `failing` with an error."""

    def __init__(self, answer_later: Callable[[Callable[[], None]], Any], failing: int) -> None:
        self.new_future: Callable[[], Any] = Future
        self._answer_later = answer_later
        self._failing = failing
        self.futures: list[Any] = []
        self.most = 0

    def stage(self, ref: LoadRef, part: PartRef, file: str, offset: int, data: bytes) -> Any:
        future = self.new_future()
        number = len(self.futures)
        self.futures.append(future)
        self.most = max(self.most, sum(not each.done() for each in self.futures))

        def answer() -> None:
            if future.done():
                return
            if number == self._failing:
                future.set_exception(queueber.NotFound("load: it was dropped"))
            else:
                future.set_result(None)

        self._answer_later(answer)
        return future


def staged_blocking(failing: int) -> SlowCalls:
    calls = SlowCalls(lambda answer: Timer(0.02, answer).start(), failing)
    load = queueber.Load(calls, INFO)  # type: ignore[arg-type]
    _stage_all(lambda: load.stage(PART, "f", bytes(CHUNKS * LOAD_CHUNK_BYTES)), failing)
    return calls


def staged_awaited(failing: int) -> SlowCalls:
    async def main() -> SlowCalls:
        loop = asyncio.get_running_loop()
        calls = SlowCalls(lambda answer: loop.call_later(0.02, answer), failing)
        calls.new_future = loop.create_future
        load = queueber.AsyncLoad(calls, INFO)  # type: ignore[arg-type]
        data = bytes(CHUNKS * LOAD_CHUNK_BYTES)
        if failing < 0:
            await load.stage(PART, "f", data)
        else:
            with pytest.raises(queueber.NotFound):
                await load.stage(PART, "f", data)
        return calls

    return asyncio.run(main())


def _stage_all(stage: Callable[[], None], failing: int) -> None:
    if failing < 0:
        stage()
    else:
        with pytest.raises(queueber.NotFound):
            stage()


@pytest.mark.parametrize("staged", [staged_blocking, staged_awaited])
def test_four_chunks_are_under_way(staged: Callable[[int], SlowCalls]) -> None:
    calls = staged(-1)

    assert (len(calls.futures), calls.most) == (CHUNKS, 4)
    assert all(each.done() for each in calls.futures)


@pytest.mark.parametrize("staged", [staged_blocking, staged_awaited])
def test_chunks_behind_one_that_failed_are_withdrawn(staged: Callable[[int], SlowCalls]) -> None:
    calls = staged(2)

    assert len(calls.futures) < CHUNKS
    assert all(each.done() for each in calls.futures)
    assert any(each.cancelled() for each in calls.futures)
