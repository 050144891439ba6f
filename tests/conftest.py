"""The order in which files are run."""

from collections import Counter

import pytest

LONG = ("slow", "recovery", "spark")
MANY = 10
"""So many slow tests make a file that takes minutes."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that at the end no worker is left alone with one.

    Those with many slow tests come first, most tests first, and then those with any long test.
    Otherwise files stay in the order of their folders: files of a folder share servers.
    """
    long = {item.path for item in items if any(map(item.get_closest_marker, LONG))}
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))

    def turn(item: pytest.Item) -> tuple[int, bool]:
        tests = slow[item.path]
        return -tests if tests >= MANY else 0, item.path not in long

    items.sort(key=turn)
