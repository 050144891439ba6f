"""Delays between retries."""

import asyncio

import pytest

from queueber.client.transport import backoff
from queueber.client.transport.backoff import Retries, RetryDelays


def test_delays_grow_to_their_limit_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "uniform", lambda low, high: high)
    delays = RetryDelays(first_seconds=1, max_seconds=5)

    assert [delays.seconds() for _ in range(5)] == [1, 2, 4, 5, 5]
    delays.reset()
    assert delays.seconds() == 1


def test_delays_are_cut_at_random_to_half_at_most() -> None:
    found = {RetryDelays(first_seconds=1).seconds() for _ in range(100)}

    assert len(found) > 50
    assert all(0.5 <= each <= 1 for each in found)


def test_retries_end_without_a_pause_at_the_deadline() -> None:
    async def main() -> tuple[bool, bool]:
        now = asyncio.get_running_loop().time()
        return await Retries(now + 60).pause(), await Retries(now).pause()

    assert asyncio.run(main()) == (True, False)
