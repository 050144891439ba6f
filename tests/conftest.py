"""The order in which files are run."""

import pytest

LONG = ("slow", "recovery", "spark")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with long tests first, so that at the end no worker is left alone with one.

    Otherwise they stay in the order of their folders: files of a folder share servers.
    """
    long = {item.path for item in items if any(map(item.get_closest_marker, LONG))}
    items.sort(key=lambda item: item.path not in long)
