"""Delays between retries."""

import asyncio
import random

import pytest

from queueber.client.transport import backoff
from queueber.client.transport.backoff import Retries


def test_delays_grow_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_uniform", lambda low, high: high)
    monkeypatch.setattr(backoff, "_FIRST_DELAY_SECONDS", 1)
    monkeypatch.setattr(backoff, "_DELAY_SECONDS_MAX", 5)
    retries = Retries(0)

    assert [retries.seconds() for _ in range(5)] == [1, 2, 4, 5, 5]


def test_delays_are_cut_at_random_to_half_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_FIRST_DELAY_SECONDS", 1)

    found = {Retries(0).seconds() for _ in range(100)}

    assert len(found) > 50
    assert all(0.5 <= each <= 1 for each in found)


def test_delays_leave_the_random_numbers_of_the_program_alone() -> None:
    before = random.getstate()

    Retries(0).seconds()

    assert random.getstate() == before


def test_retries_end_without_a_pause_at_the_deadline() -> None:
    async def main() -> tuple[bool, bool]:
        now = asyncio.get_running_loop().time()
        return await Retries(now + 60).pause(), await Retries(now).pause()

    assert asyncio.run(main()) == (True, False)
