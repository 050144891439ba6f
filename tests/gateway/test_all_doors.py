"""One topic, every door: what is published through each is read through all of them.

Each reader reports what its door shows of the messages, in the order of the log. Nothing is copied
between the doors, so a reader that shows another order, a message twice, or another key, has a
mistake of its own. The reader of Spark is in tests/spark/read/test_all_doors.py.
"""

from collections.abc import Iterator

import pytest

from queueber.testing import ServerProcess
from tests.support.doors import READERS, House, Shown, opened_house, publish_through_all


@pytest.fixture(scope="module")
def house(server: ServerProcess) -> Iterator[House]:
    with opened_house(server) as house:
        yield house


@pytest.fixture(scope="module")
def published(house: House) -> list[Shown]:
    return publish_through_all(house)


@pytest.mark.parametrize("door", READERS)
def test_each_door_shows_what_came_through_all_of_them(
    house: House, published: list[Shown], door: str
) -> None:
    read, columns = READERS[door]

    assert read(house) == [{name: each[name] for name in columns.split()} for each in published]
