"""The clocks: one that never jumps, and one that only moves when told to."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.clock import ManualClock, SystemClock

NS = 1_000_000_000


def test_system_clock_at_start_is_the_wall_clock() -> None:
    before_ms = time.time_ns() // 1_000_000
    now_ms = SystemClock().now_ms()
    after_ms = time.time_ns() // 1_000_000

    assert before_ms - 1 <= now_ms <= after_ms + 1


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_system_clock_when_the_wall_clock_steps_goes_on_by_elapsed_time(
    monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000 * NS)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 50 * NS)
    clock = SystemClock()
    assert clock.now_ms() == 1_700_000_000_000

    monkeypatch.setattr(time, "time_ns", lambda: (1_700_000_000 + step_s) * NS)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 52 * NS)

    assert clock.now_ms() == 1_700_000_002_000


def test_system_clock_made_anew_takes_the_wall_clock_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    SystemClock()

    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000 * NS)

    assert 1_800_000_000_000 <= SystemClock().now_ms() < 1_800_000_010_000


def test_system_clock_never_runs_back() -> None:
    clock = SystemClock()

    seen = [clock.now_ms() for _ in range(10_000)]

    assert seen == sorted(seen)


@given(start_ms=st.integers(0, 1 << 47), steps=st.lists(st.integers(-1000, 1000)))
def test_manual_clock_moves_by_what_it_is_told(start_ms: int, steps: list[int]) -> None:
    clock = ManualClock(start_ms)

    for step in steps:
        clock.advance(step)

    assert clock.now_ms() == start_ms + sum(steps)
