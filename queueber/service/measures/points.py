"""The last points of some series: rows of numbers in a ring, at a steady pace.

A point is taken every 10 seconds and kept for an hour. Every 30 of them become one that is kept for
a day.
"""

from array import array
from collections.abc import Sequence

from queueber.limits import SAMPLE_EVERY_MS
from queueber.model import History, HistorySpan

STEP_MS = SAMPLE_EVERY_MS
POINTS_IN_ONE = 30
HOUR_POINTS = 360
DAY_POINTS = 288
STEPS_MS = {HistorySpan.HOUR: STEP_MS, HistorySpan.DAY: POINTS_IN_ONE * STEP_MS}


class Ring:
    """The last rows, each as wide as all others. Takes 8 bytes a number, and only once used."""

    __slots__ = ("_at", "_rows_max", "_values", "_width")

    def __init__(self, width: int, rows_max: int) -> None:
        self._width = width
        self._rows_max = rows_max
        self._values = array("d")
        self._at = 0

    def append(self, row: Sequence[float]) -> None:
        start = self._at * self._width
        # Past the end, this appends.
        self._values[start : start + self._width] = array("d", row)
        self._at = (self._at + 1) % self._rows_max

    def columns(self, rows: int) -> list[list[float]]:
        """The last `rows` of each column, oldest first; 0: all."""
        width, values = self._width, self._values
        if len(values) == width * self._rows_max:
            cut = self._at * width
            values = values[cut:] + values[:cut]
        if rows:
            values = values[-rows * width :]
        return [values[column::width].tolist() for column in range(width)]


class Track:
    """The points of one queue or topic."""

    __slots__ = ("_day", "_gathered", "_hour", "_names", "_peaks", "_summed")

    def __init__(self, names: Sequence[str], peaks: Sequence[str]) -> None:
        """Of the series in `peaks` a day keeps the largest of 30 points, of the others the mean."""
        self._names = names
        self._peaks = peaks
        self._hour = Ring(len(names), HOUR_POINTS)
        self._day = Ring(len(names), DAY_POINTS)
        self._gathered: list[Sequence[float]] = []
        self._summed: list[float] = []

    def append(self, row: Sequence[float]) -> None:
        self._hour.append(row)
        self._gathered.append(row)
        if len(self._gathered) > POINTS_IN_ONE:
            del self._gathered[0]

    def sum_up(self) -> None:
        """Make one point for the day of those since the last; without any it is as the last."""
        gathered, self._gathered = self._gathered, []
        if gathered:
            columns = zip(self._names, zip(*gathered, strict=True), strict=True)
            self._summed = [
                max(column) if name in self._peaks else sum(column) / len(column)
                for name, column in columns
            ]
        self._day.append(self._summed)

    def history(self, span: HistorySpan, points: int, end_ms: int) -> History:
        ring = self._hour if span is HistorySpan.HOUR else self._day
        columns = ring.columns(points)
        if not columns[0]:
            return History()
        return History(end_ms, STEPS_MS[span], dict(zip(self._names, columns, strict=True)))
