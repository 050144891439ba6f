"""Filters that Spark may hand to a reader, if the user wants that and Spark is set up for it."""

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In

Take = Callable[[list[Filter]], Iterable[Filter]]


class TakesFilters:
    """What is called as a reader's `pushFilters`.

    Spark refuses a reader that has one of its own while its setting for that is off, as it is
    unless somebody turns it on, and tells its own from others by `__func__`. A reader that takes
    filters only when it is asked to is to work with either setting, so this one passes for Spark's.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Take) -> None:
        self._take = take

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._take(filters)


def wanted_values(condition: Filter) -> tuple[str, set[Any]]:
    """The column and the values that it may have, of a condition that says just that; else none."""
    if isinstance(condition, EqualTo):
        return ".".join(condition.attribute), {condition.value}
    if isinstance(condition, In):
        return ".".join(condition.attribute), set(condition.value)
    return "", set()
