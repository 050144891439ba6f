"""How a long run is judged, and a short one."""

from collections.abc import Callable

import pytest

from faults.flat import FILES_MAX, MEMORY_MB_MAX, Sample, growth, judge
from faults.soak import run


def samples(
    count: int = 100,
    every: float = 10.0,
    *,
    memory: Callable[[int], float] = lambda at: 200.0,
    p99: Callable[[int], float] = lambda at: 8.0,
    files: Callable[[int], int] = lambda at: 20,
    descriptors: Callable[[int], int] = lambda at: 60,
    calls: int = 1000,
) -> list[Sample]:
    return [
        Sample(at * every, memory(at), calls, 2.0, p99(at), files(at), 300.0, descriptors(at))
        for at in range(count)
    ]


def test_what_stays_as_it_is_is_flat() -> None:
    assert judge(samples()) == []


def test_what_goes_up_and_down_is_flat() -> None:
    assert judge(samples(memory=lambda at: 200 + 60 * (at % 7) / 7)) == []
    assert judge(samples(p99=lambda at: 8.0 if at % 5 else 200.0)) == []


def test_growth_is_that_of_the_line_through_all_samples() -> None:
    assert growth(samples(11, memory=lambda at: 100 + 3 * at), "memory_mb") == pytest.approx(30)


def test_memory_that_creeps_is_found() -> None:
    assert judge(samples(memory=lambda at: 200 + at)) == [
        "memory grew by 49 MB in the second half, from 274"
    ]


def test_memory_that_grows_while_the_server_comes_to_its_size_is_no_leak() -> None:
    def memory(at: int) -> float:
        return min(300.0, 100.0 + 10 * at)

    assert judge(samples(memory=memory)) == []
    assert judge(samples(20, every=3.0, memory=memory)) == []


def test_memory_over_all_bounds_is_found_at_once() -> None:
    [wrong] = judge(samples(20, every=3.0, memory=lambda at: 1000.0))

    assert wrong == f"memory_mb came to 1000, over {MEMORY_MB_MAX:.0f}"


def test_latency_that_creeps_is_found() -> None:
    [wrong] = judge(samples(p99=lambda at: 1.0 if at < 75 else 50.0))

    assert wrong == "p99 went from 1.0 to 50.0 ms"


def test_files_without_bound_and_descriptors_that_are_not_closed_are_found() -> None:
    assert judge(samples(files=lambda at: 3 * at)) == [f"files came to 297, over {FILES_MAX}"]
    assert judge(samples(descriptors=lambda at: at)) == ["49 more open files in the second half"]


def test_silence_and_too_few_samples_are_no_success() -> None:
    assert judge(samples(calls=0)) == ["no call was answered for a while"]
    assert judge(samples(3)) == ["3 samples are too few"]


@pytest.mark.long
@pytest.mark.recovery
def test_ten_seconds_are_in_order() -> None:
    found, wrong = run(10, 0.5, seed=1)

    assert wrong == []
    assert sum(sample.calls for sample in found) > 200
