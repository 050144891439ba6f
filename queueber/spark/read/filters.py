"""Filters of a DataFrame that Spark leaves to a reader, if an option and Spark's settings allow."""

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In


class PushedFilters:
    """What Spark calls as a reader's `pushFilters`; answers with the filters that Spark keeps.

    Spark refuses a reader that defines `pushFilters` while its setting for pushed filters is off,
    as it is by default. It recognises the inherited method by `__func__`. Ours carries that mark,
    so that a reader works with either setting.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[Filter], bool], *, is_on: bool) -> None:
        """`push` takes a filter over and says whether it could."""
        self._push = push
        self._is_on = is_on

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            if not self._is_on or not self._push(each):
                yield each


def wanted_values(condition: Filter) -> tuple[str, set[Any]]:
    """A column and the values it may have; "" and none for any other kind of condition."""
    if isinstance(condition, EqualTo):
        return ".".join(condition.attribute), {condition.value}
    if isinstance(condition, In):
        return ".".join(condition.attribute), set(condition.value)
    return "", set()
