"""Points: the last hour in steps of 10 seconds, the last day in steps of 5 minutes."""

from queueber.model import History, HistorySpan
from queueber.service.measures.points import (
    DAY_POINTS,
    HOUR_POINTS,
    POINTS_IN_ONE,
    STEP_MS,
    Ring,
    Track,
)


def test_ring_keeps_the_last_rows_in_order() -> None:
    ring = Ring(2, 3)

    for number in range(5):
        ring.append((number, 10 * number))

    assert ring.columns(0) == [[2, 3, 4], [20, 30, 40]]
    assert ring.columns(2) == [[3, 4], [30, 40]]
    assert ring.columns(9) == [[2, 3, 4], [20, 30, 40]]


def test_ring_that_is_not_full_has_what_there_is() -> None:
    ring = Ring(1, 3)
    assert ring.columns(0) == [[]]

    ring.append((7,))

    assert ring.columns(0) == [[7]]


def test_spans_are_an_hour_and_a_day() -> None:
    assert HOUR_POINTS * STEP_MS == 3_600_000
    assert DAY_POINTS * POINTS_IN_ONE * STEP_MS == 86_400_000


def test_track_without_points_has_no_series() -> None:
    assert Track(("a",), ()).history(HistorySpan.HOUR, 0, 1) == History()


def test_point_of_the_day_is_the_mean_or_the_peak_of_its_points() -> None:
    track = Track(("rate", "age"), ("age",))
    for number in range(POINTS_IN_ONE):
        track.append((number, number))
    track.sum_up()
    track.append((5, 5))
    track.sum_up()

    found = track.history(HistorySpan.DAY, 0, 1000)

    mean = sum(range(POINTS_IN_ONE)) / POINTS_IN_ONE
    assert found == History(1000, 300_000, {"rate": [mean, 5], "age": [POINTS_IN_ONE - 1, 5]})


def test_points_that_were_left_out_are_as_the_last() -> None:
    track = Track(("a",), ())
    track.append((4,))

    track.sum_up()
    track.sum_up()

    assert track.history(HistorySpan.DAY, 0, 1).series == {"a": [4, 4]}
